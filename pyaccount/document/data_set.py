"""Documents of kind data-set: the privacy budget of a data set, which a ledger keeps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field

from pyaccount.document import ranges
from pyaccount.document.mechanisms.stated import StatedDivergence
from pyaccount.document.policy import Unit
from pyaccount.document.sections import Risk
from pyaccount.document.validation import validate
from pyaccount.document.words import ADJACENCIES, VERSION, Adjacency
from pyaccount.errors import DocumentError, Path, Problem
from pyaccount.reading.fields import Choice, Items, Number, Text, Version
from pyaccount.reading.kinds import Section
from pyaccount.reading.nodes import Table
from pyaccount.reading.sources import Handed, of_kind
from pyaccount.reading.written import Written
from pyaccount.rounding import shortest

Every = Literal["day", "month", "year"]
#: The name of the block of a data set that is not divided.
WHOLE = "all"
#: The name of the filter of a data set whose budget is a μ or a ρ.
BUDGET = "budget"
#: How the name of a period is written.
PERIODS: dict[str, str] = {"day": r"\d{4}-\d{2}-\d{2}", "month": r"\d{4}-\d{2}", "year": r"\d{4}"}

#: The ways to state a budget, each with the fields that belong to it.
WAYS: dict[str, tuple[str, ...]] = {
    "epsilon": ("epsilon", "delta"),
    "rho": ("rho",),
    "mu": ("mu",),
    "risk": ("risk",),
    "renyi": ("renyi",),
}
_MEANINGS = [f"{word}: {words.meaning}" for word, words in ADJACENCIES.items()]


class DataSetPrivacy(Section):
    """What is protected, and the budget: exactly one of epsilon with delta, rho, mu, and risk."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["epsilon", "delta"]},
                {"required": ["rho"]},
                {"required": ["mu"]},
                {"required": ["risk"]},
            ]
        }
    )

    adjacency: Annotated[Adjacency, Choice(get_args(Adjacency))] = Field(
        description=f"Which two data sets are neighbours. {'; '.join(_MEANINGS)}. Every entry must have the same."
    )
    group_size: Annotated[int, Number(ranges.GROUP_SIZE, whole=True)] = Field(
        default=1, description="The number of records (or users) that are protected together."
    )
    unit: Annotated[Unit, Choice(get_args(Unit))] = Field(
        default="record", description="What is protected: records, or users with all of their records."
    )
    epsilon: Annotated[float | None, Number(ranges.EPSILON)] = Field(
        default=None, description="ε of the budget, in nats. Only with delta."
    )
    delta: Annotated[float | None, Number(ranges.DELTA_OR_ZERO)] = Field(
        default=None, description="δ of the budget. Only with epsilon."
    )
    rho: Annotated[float | None, Number(ranges.RHO)] = Field(
        default=None,
        description="ρ of zero-concentrated differential privacy: all entries count in one filter of this budget.",
    )
    mu: Annotated[float | None, Number(ranges.MECHANISM_MU)] = Field(
        default=None, description="μ of Gaussian differential privacy: all entries count in one filter of this budget."
    )
    risk: Risk | None = Field(default=None, description="A limit on the success of every attack, as in documents.")


class FilterSection(Section):
    """A part of the budget that is set aside for adaptive entries."""

    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the filter.")
    epsilon: Annotated[float | None, Number(ranges.EPSILON)] = Field(
        default=None, description="The sum of the ε of the entries. Only with delta."
    )
    delta: Annotated[float | None, Number(ranges.BASE_DELTA)] = Field(
        default=None, description="The sum of the δ of the entries. Only with epsilon."
    )
    rho: Annotated[float | None, Number(ranges.RHO)] = Field(
        default=None, description="The sum of the ρ of the entries (zCDP)."
    )
    mu: Annotated[float | None, Number(ranges.MECHANISM_MU)] = Field(
        default=None, description="√Σμ² of the entries, whose noise is Gaussian and unsampled."
    )
    renyi: Annotated[tuple[StatedDivergence, ...], Items(ranges.STATED_POINTS)] = Field(
        default=(), description="The sums of the Rényi divergences of the entries, at each of these orders."
    )


class BlockSection(Section):
    """A part of the data."""

    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the block.")


class PeriodsSection(Section):
    """A block for each day, month or year of data."""

    every: Annotated[Every, Choice(get_args(Every))] = Field(description="The length of a period.")
    since: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(
        description="The first period: `2026-01-31`, `2026-01` or `2026`, as every says (in quotes)."
    )
    keep: Annotated[int | None, Number(ranges.PARTICIPATIONS, whole=True)] = Field(
        default=None,
        description="How many periods of data are kept. Blocks of older periods take no entries. Default: all.",
    )


class DataSetModel(Section):
    """A document of kind data-set."""

    pyaccount: Annotated[int, Version(VERSION)] = Field(description="The version of the document language.")
    kind: Literal["data-set"] = Field(description="The kind of this document: the budget of a data set.")
    name: Annotated[str, Text(ranges.NAME_LENGTH)] = Field(description="The name of the data set.")
    privacy: DataSetPrivacy = Field(description="What is protected, and the budget.")
    filters: Annotated[tuple[FilterSection, ...], Items(ranges.FILTERS)] = Field(
        default=(),
        description="Parts of the budget that are set aside for adaptive entries. They are fixed when the data set is created.",
    )
    blocks: Annotated[tuple[BlockSection, ...], Items(ranges.PARTS)] = Field(
        default=(),
        description="Disjoint parts of the data, by time or by user. Each has the whole budget and accounts of its own. To "
        "which block a record belongs depends on this record alone. Default: one block, `all`.",
    )
    periods: PeriodsSection | None = Field(
        default=None, description="Blocks by time, which need not be listed: a budget for each month of data."
    )


def undivided(privacy: DataSetPrivacy) -> str | None:
    """Return why a data set with these neighbours cannot have several blocks; None if it can.

    What holds for each block holds for the data set only if neighbours differ in one of them.
    """
    if privacy.adjacency == "replace-one":
        reason = "a record may be replaced by one of another block, so that neighbours differ in two"
    elif privacy.group_size != 1:
        reason = f"the {privacy.group_size} records that are protected together may be in different blocks"
    elif privacy.unit == "user":
        reason = "a user may have records in several blocks"
    else:
        return None
    return (
        f"no bound is implemented for several blocks here: {reason}. Protect one record under add-remove or zero-out, or have "
        "one block"
    )


class DataSet(Written):
    """A document of kind data-set that has no problems."""

    def __init__(self, root: Table, file: str | None = None, problems: Iterable[Problem] = ()) -> None:
        """Validate a tree, as `Document` does. Raises `DocumentError`."""
        model, invalid = validate(root, DataSetModel)
        super().__init__(root, file, model)
        found = [*problems, *invalid]
        if not found:
            found.extend(self._broken_rules(model))
        if found:
            raise DocumentError(found)
        self.name: str = model.name
        self.privacy: DataSetPrivacy = model.privacy
        #: The way in which the budget is stated: a key of `WAYS`.
        self.way: str = next(way for way in WAYS if getattr(model.privacy, way, None) is not None)
        #: The budgets of the filters, by their names.
        self.filters: dict[str, dict[str, Any]] = {section.name: _budget(section) for section in model.filters}
        if self.way in ("mu", "rho"):
            self.filters[BUDGET] = {self.way: getattr(model.privacy, self.way)}
        self.blocks: tuple[str, ...] = tuple(section.name for section in model.blocks)
        self.periods: PeriodsSection | None = model.periods
        if not self.blocks and self.periods is None:
            self.blocks = (WHOLE,)

    @property
    def undivided(self) -> str | None:
        """Why the data set cannot have several blocks; None if it can."""
        return undivided(self.privacy)

    @property
    def filtered(self) -> bool:
        """Whether every entry counts in one filter, because the budget is a μ or a ρ."""
        return self.way in ("mu", "rho")

    def privacy_mapping(self) -> dict[str, Any]:
        """Return adjacency and group size as documents of mechanisms state them."""
        return {"adjacency": self.privacy.adjacency, "group_size": self.privacy.group_size}

    def budget_words(self) -> str:
        """Return the budget in words: `ε = 4 at δ = 1e-6`."""
        privacy = self.privacy
        if self.way == "epsilon":
            assert privacy.epsilon is not None
            assert privacy.delta is not None
            return f"ε = {shortest(privacy.epsilon)} at δ = {shortest(privacy.delta)}"
        if privacy.risk is None:
            return f"{'ρ' if self.way == 'rho' else 'μ'} = {shortest(getattr(privacy, self.way))}"
        stated = privacy.risk.model_dump(exclude_none=True)
        return ", ".join(f"{name} {shortest(value)}" for name, value in stated.items())

    def _broken_rules(self, model: DataSetModel) -> Iterator[Problem]:
        yield from self._ways(model.privacy, ("privacy",), "the data set")
        for index, section in enumerate(model.filters):
            yield from self._ways(section, ("filters", index), "a filter")
        if model.filters and (model.privacy.mu is not None or model.privacy.rho is not None):
            message = (
                "with a budget of mu or rho all entries count in one filter of the whole budget, so that nothing is set aside: "
                "leave filters out"
            )
            yield self.problem("contradiction", ("filters",), message)
        for key in ("filters", "blocks"):
            names = [section.name for section in getattr(model, key)]
            for index, name in enumerate(names):
                if name in names[:index]:
                    message = (
                        f"two {key} have this name, and entries are told by names where they count: give it another one"
                    )
                    yield self.problem("contradiction", (key, index, "name"), message)
        if (periods := model.periods) is not None and not is_period(periods.since, periods.every):
            message = f"a {periods.every} is written as {EXAMPLES[periods.every]}: write it so, in quotes"
            yield self.problem("out-of-range", ("periods", "since"), message, allowed=EXAMPLES[periods.every])
        if (why := undivided(model.privacy)) is not None and (len(model.blocks) > 1 or model.periods is not None):
            path: Path = ("blocks",) if len(model.blocks) > 1 else ("periods",)
            yield self.problem("no-valid-bound", path, why, allowed="one block")

    def _ways(self, section: DataSetPrivacy | FilterSection, path: Path, what: str) -> Iterator[Problem]:
        ways = [way for way in WAYS if way in type(section).model_fields]
        given = [way for way in ways if getattr(section, way) not in (None, ())]
        allowed = ", ".join("epsilon and delta" if way == "epsilon" else way for way in ways)
        if not given:
            message = f"{what} needs a budget: give one of {allowed}"
            yield self.problem("missing-key", (*path, "epsilon"), message, allowed=allowed)
        for way in given[1:]:
            message = f"{what} has one budget, and {given[0]} states one already: leave {way} out, or {given[0]}"
            yield self.problem("contradiction", (*path, way), message)
        if given == ["epsilon"] and section.delta is None:
            message = "epsilon is only half of a budget: give the delta too, or delta: 0"
            yield self.problem("missing-key", (*path, "delta"), message, allowed=ranges.DELTA_OR_ZERO.describe())
        if "epsilon" not in given and section.delta is not None:
            message = "delta belongs to epsilon, which is not given: leave it out, or give epsilon"
            yield self.problem("contradiction", (*path, "delta"), message)
        risk = getattr(section, "risk", None)
        if risk is not None:
            yield from self._risk(risk, (*path, "risk"))

    def _risk(self, risk: Risk, path: Path) -> Iterator[Problem]:
        ways = ("advantage", "true_positive_rate", "gaussian_mu")
        given = [way for way in ways if getattr(risk, way) is not None]
        if len(given) != 1:
            message = f"a limit on attacks is one of {', '.join(ways)}: give exactly one"
            slug = "missing-key" if not given else "contradiction"
            yield self.problem(slug, (*path, given[1] if given else ways[0]), message)
        if (risk.true_positive_rate is None) != (risk.false_positive_rate is None):
            missing = "true_positive_rate" if risk.true_positive_rate is None else "false_positive_rate"
            message = f"a limit on rates has both, and {missing} is not given: give it"
            yield self.problem("missing-key", (*path, missing), message)


#: A period of each length.
EXAMPLES = {"day": "2026-01-31", "month": "2026-01", "year": "2026"}


def is_period(name: str, every: str) -> bool:
    """Return whether a name is that of a period of this length that exists."""
    if not re.fullmatch(PERIODS[every], name):
        return False
    from datetime import date

    try:
        date.fromisoformat(name + "-01-01"[len(name) - 4 :] if every != "day" else name)
    except ValueError:
        return False
    return True


def _budget(section: FilterSection) -> dict[str, Any]:
    """Return the budget of a filter as `filters.filter_of` takes it."""
    mapping = section.model_dump(mode="json", exclude_none=True, exclude={"name"})
    return {key: value for key, value in mapping.items() if value != []}


def load_data_set(source: str | os.PathLike[str] | Handed | Mapping[str, Any] | DataSet) -> DataSet:
    """Load a data set from a YAML file or a mapping. Raises `DocumentError` with every problem, or for other kinds."""
    message = "this is not a data set: a data set has `kind: data-set`, and its budget under `privacy`"
    return DataSet(*of_kind(source, "data-set", message))

"""Every kind that documents may name, with what builds it. The names are those of pyaccount's registries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from adversaries import mechanisms, partitions, selections, separated, stated, training, truncated, unsampled, wrappers
from adversaries.component import Builder, Component, Impossible, Setting
from pyaccount.document.amplification import Base
from pyaccount.document.matrices import MATRICES
from pyaccount.document.mechanisms import MECHANISMS
from pyaccount.document.models import PartPhases, SampledPhases, SelectedPhases
from pyaccount.document.noise import AnyNoise
from pyaccount.document.samplers import SAMPLERS
from pyaccount.document.sections import Risk
from pyaccount.document.selection import RUNS
from pyaccount.document.words import Adjacency
from pyaccount.filters.reading import FILTERS
from pyaccount.plan.samplers import PLANS
from pyaccount.reading.kinds import Kinds, word_of

ADJACENCIES: tuple[str, ...] = get_args(Adjacency)

SIMPLE: dict[str, Builder] = {
    "mechanism stated": stated.stated,
    "mechanism gaussian": mechanisms.normal,
    "mechanism mixture-of-gaussians": mechanisms.mixture,
    "mechanism laplace": mechanisms.lap,
    "mechanism discrete-gaussian": mechanisms.integers,
    "mechanism discrete-laplace": mechanisms.geometric,
    "mechanism skellam": mechanisms.poissons,
    "mechanism distributed-discrete-gaussian": mechanisms.several,
    "mechanism randomized-response": mechanisms.response,
    "mechanism exponential": selections.exponential,
    "mechanism permute-and-flip": selections.permute_and_flip,
    "mechanism report-noisy-max": selections.report_noisy_max,
    "mechanism partition-selection": partitions.partition_selection,
    **{f"sampler {kind}": build for kind, build in training.BUILDERS.items()},
    "sampler none": unsampled.ordered,
    "noise gaussian": unsampled.ordered,
    "noise laplace": unsampled.ordered_laplace,
    **{
        f"matrix {kind}": unsampled.with_matrix(kind)
        for kind in (
            "identity",
            "banded-square-root",
            "toeplitz",
            "banded-inverse",
            "blt",
            "tree",
            "optimal-toeplitz",
            "dense",
        )
    },
}
#: Runs whose loss is sampled: they take long, and cannot stand in other phases.
SAMPLED: dict[str, Builder] = {
    "sampler b-min-sep": separated.sampled_run(separated.b_min_sep),
    "sampler user-b-min-sep": separated.sampled_run(separated.user_b_min_sep),
    "sampler balls-in-bins, by round": separated.sampled_run(separated.balls_in_bins),
    "sampler cyclic-poisson, random": separated.sampled_run(separated.cyclic),
    "sampler b-min-sep, truncated": truncated.b_min_sep,
    "sampler balls-in-bins, truncated": truncated.balls_in_bins,
    **{
        f"sampler {kind} with a matrix": separated.sampled_run(process, matrix=True)
        for kind, process in (
            ("b-min-sep", separated.b_min_sep),
            ("user-b-min-sep", separated.user_b_min_sep),
            ("balls-in-bins", separated.balls_in_bins),
            ("cyclic-poisson", separated.cyclic_fixed),
            ("cyclic-poisson, random,", separated.cyclic),
        )
    },
}
_INNER = {name: build for name, build in SIMPLE.items() if not name.startswith("matrix ")}
WRAPPERS: dict[str, Builder] = {
    "phases": wrappers.on_sample(_INNER),
    "parallel": wrappers.parallel(_INNER),
    **{f"select {name}": wrappers.select(_INNER, name) for name in wrappers.LAWS},
}
BUILDERS: dict[str, Builder] = SIMPLE | SAMPLED | WRAPPERS


#: The price that refutes a filter, by the key of its budget.
PRICES = {"mu": "gaussian", "rho": "zcdp", "renyi": "renyi", "epsilon": "basic"}


def expected() -> set[str]:
    """Return the names of all kinds, from pyaccount's registries."""
    found = {f"mechanism {word_of(kind)}" for kind in MECHANISMS} | {f"sampler {word_of(kind)}" for kind in SAMPLERS}
    found |= {f"matrix {word_of(kind)}" for kind in MATRICES} | {f"select {word_of(kind)}" for kind in RUNS}
    found |= {f"noise {word}" for word in _words(AnyNoise)} | {f"amplification {word}" for word in _words(Base)}
    # Samplers whose rounds do not compose take a matrix. Without sampling, every kind of matrix is one of its own.
    found |= {
        f"sampler {kind} with a matrix" for kind, plan in PLANS.items() if not plan.round_by_round and kind != "none"
    }
    found |= set(options())
    shapes = {key for shape in (SampledPhases, SelectedPhases, PartPhases) for key in shape.model_fields}
    found |= {f"filter {way}" for way in FILTERS} | {f"risk {one}" for one in _measures()}
    return found | (shapes & {"phases"}) | {"parallel", "odometer"}


#: Options of samplers that no document may have, because nothing is proven: a test asks for their refusal.
REFUSED = {
    "sampler cyclic-poisson truncate_to",
    "sampler user-b-min-sep truncate_to",
    *(f"sampler {kind} rounds_per_subset" for kind in ("must-ow", "must-wo", "must-ww")),
}


def _words(of: Any) -> list[str]:
    return list(next(one for one in get_args(of) if isinstance(one, Kinds)).by_kind)


def options() -> list[str]:
    """Return the names of all options of samplers that some documents may have."""
    names = [f"sampler {word_of(kind)} {option}" for kind in SAMPLERS for option in _options(kind)]
    return [name for name in names if name not in REFUSED]


def _options(kind: Any) -> Iterator[str]:
    """Yield the keys that may be left out of a sampler, and the words that may stand at its other keys."""
    for key, field in kind.model_fields.items():
        if key != "kind" and get_origin(field.annotation) is Literal:
            yield from (f"{key}={word}" for word in get_args(field.annotation) if word != field.default)
        elif not field.is_required():
            yield key


def _measures() -> list[str]:
    """Return the first key of each limit on attacks."""
    return [str(one["required"][0]) for one in Risk.model_config["json_schema_extra"]["oneOf"]]  # type: ignore[index, call-overload]


def having(option: str) -> Builder:
    """Return the builder of the sampler of an option, such as "sampler poisson truncate_to", that draws until it is there."""
    _, kind, key = option.split(" ")
    key, _, word = key.partition("=")
    of_kind = [
        build for name, build in (SIMPLE | SAMPLED).items() if name.replace(",", "").split(" ")[:2] == ["sampler", kind]
    ]

    def build(at: Setting) -> Component:
        for _ in range(_DRAWS):
            try:
                made = at.rng.choice(of_kind)(at)
            except Impossible:
                continue
            value = made.body["sampler"].get(key)
            if value == word if word else value is not None:
                return made
        raise Impossible

    return build


#: How many runs are drawn to find one with an option.
_DRAWS = 8


#: Runs with an option of their sampler. One that no builder draws is found out where nothing is drawn.
OPTIONS: dict[str, Builder] = {name: having(name) for name in options()}
BUILDERS |= OPTIONS

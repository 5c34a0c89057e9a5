"""The open values of a document, that is, its blank and its `choose:` lists, and the rules about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyaccount.document.schedules import ScheduledMultiplier
from pyaccount.document.stated import number_or_none
from pyaccount.errors import Path, Problem, path_text
from pyaccount.reading.fields import BLANKS, NOISE_BLANKS, SOLVE, Choose

if TYPE_CHECKING:
    from pyaccount.document.views import Mechanism


def blanks(document: Mechanism) -> list[Path]:
    """Return the paths of all values of the document that are `solve`, in the order of the text."""
    privacy = [path for path in BLANKS if path[0] == "privacy"]
    found: list[Path] = [path for path in privacy if getattr(document.stated_privacy, path[1]) == SOLVE]
    if document.shared_noise is not None and document.shared_noise.scale == SOLVE:
        found.append(("noise", "scale"))
    for run in document.runs():
        multiplier = getattr(run.stated_noise or run.noise, "multiplier", None)
        if multiplier == SOLVE:
            found.append(run.at("noise", "multiplier"))
        if isinstance(multiplier, ScheduledMultiplier) and multiplier.scale == SOLVE:
            found.append(run.at("noise", "multiplier", "scale"))
    for node in document.every_node():
        for section, field in (path for path in BLANKS if path[0] == node.key):
            if getattr(getattr(node, section), field, None) == SOLVE:
                found.append(node.at(section, field))
    return sorted(found, key=document.position)


def one_blank(document: Mechanism) -> Iterator[Problem]:
    """Report every blank after the first: a document has at most one."""
    found = blanks(document)
    remedy = "leave one of them solve, and write a number for every other"
    if len({path[-2:] for path in found}) == 1:
        # If the same value is `solve` in several phases, the author wants one value for all of them.
        shared = found[0][-1] if found else ""
        remedy += (
            f". Solving for one {shared} of several phases is not implemented: write equal phases as one body, with "
            "`count` or with all of their iterations. If they differ, give all but one a number, and try several "
            "values with `pyaccount sweep`"
        )
        if shared in NOISE_BLANKS and found[0][-2] != "mechanism":
            remedy += "; or give each a number, and write `noise: {scale: solve}` beside `phases`, which finds one factor for all"
    for extra in found[1:]:
        rest = " and ".join(path_text(path) for path in found if path != extra)
        verb = "is" if len(found) == 2 else "are"
        message = f"a document has at most one blank, and {rest} {verb} solve too: {remedy}"
        yield document.problem("several-blanks", extra, message, allowed="a number")


def choices(document: Mechanism) -> Iterator[Path]:
    """Yield the paths of the `choose:` lists of the document."""
    for run in document.runs():
        for name, section in (("matrix", run.matrix), ("sampler", run.sampler)):
            for field in type(section).model_fields:
                if isinstance(getattr(section, field, None), Choose):
                    yield run.at(name, field)


def choice_at(document: Mechanism, path: Path) -> tuple[int | float | str, ...]:
    """Return the alternatives of the `choose:` list at a path that `choices` yields."""
    run = next(run for run in document.runs() if run.contains(path))
    chosen: Choose = getattr(getattr(run, str(path[-2])), str(path[-1]))
    return chosen.choose


def searches_have_a_target(document: Mechanism) -> Iterator[Problem]:
    """Report matrices optimised for sampling unless there is one body, a target of ε and δ, and σ as the blank."""
    for run in document.runs():
        if not run.matrix.searched:
            continue
        path = run.at("matrix", "optimize_for")
        if len(list(document.every_node())) > 1:
            message = "optimize_for: sampling is only implemented for documents with one body: in phases leave optimize_for out"
        elif document.shared_noise is not None:
            message = "optimize_for: sampling is not implemented beside a factor of the noise of phases: leave noise.scale out"
        elif document.stated_privacy.risk is not None:
            message = (
                "optimize_for: sampling needs ε and δ, not a budget of risk: give epsilon and delta instead of risk"
            )
        elif number_or_none(getattr(run.noise, "multiplier", None)) is not None:
            message = (
                "optimize_for: sampling minimises the error at the target ε and δ, so noise.multiplier must be solve"
            )
        else:
            continue
        yield document.problem("contradiction", path, message, allowed="column-norm")


def choices_compare_noise(document: Mechanism) -> Iterator[Problem]:
    """Report `choose:` lists with several bodies, or if σ is not the blank: a choice compares errors at the target."""
    for path in choices(document):
        if len(list(document.every_node())) > 1 or document.shared_noise is not None:
            message = "choose: is only implemented for documents with one body: in phases give the value itself"
            yield document.problem("contradiction", path, message)
        elif number_or_none(getattr(document.run.noise, "multiplier", None)) is not None:
            message = "choose: takes the value with the smallest error at the target, so noise.multiplier must be solve"
            yield document.problem("contradiction", path, message)

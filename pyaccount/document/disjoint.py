"""The rules about disjoint parts of the data: a list of parts may not say that two of them are on the same records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.errors import problem, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyaccount.document.tree import Node, Parts
    from pyaccount.errors import Problem


def disjoint_problems(node: Parts) -> Iterator[Problem]:
    """Report a list of one part, and two parts with one name."""
    if len(node.inner) == 1:
        message = (
            "this has one part, so every record is in it: write the part itself as the phase, without parallel, or give the "
            "other parts too"
        )
        yield problem("contradiction", node.at("parallel"), message, allowed="at least 2 entries")
    seen: dict[str, Node] = {}
    for part in node.inner:
        if not isinstance(part.name, str):
            continue
        name = " ".join(part.name.casefold().split())
        if name in seen:
            message = (
                f"two parts have the name {quoted(part.name)}, but a record belongs to exactly one part, so parts may not "
                "overlap: write what is run on the same records as one part, `{name: …, phases: [ … ]}`, or give the parts "
                "different names"
            )
            yield problem("contradiction", part.at("name"), message, allowed="another name")
        seen[name] = part


#: What to do about parts at the top level of a document, and inside of another phase.
AT_THE_TOP = "disjoint parts are a phase: write `phases: [{parallel: [ … ]}]`"
INSIDE = (
    "disjoint parts are implemented for the phases of a document, not inside of another phase: write every part as an entry of "
    "one list `parallel` in an entry of the document's phases"
)

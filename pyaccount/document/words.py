"""The words that several kinds of documents share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

#: The version of the document language.
VERSION = 1

Adjacency = Literal["add-remove", "zero-out", "replace-one"]


class Assumed(NamedTuple):
    """Something that must be true of a run, in full and in short, for a list with one line for each (at most 76 characters)."""

    text: str
    short: str

    def filled(self, **values: object) -> Assumed:
        """Return both forms with values in place of the names in braces."""
        return Assumed(self.text.format(**values), self.short.format(**values))

    def of(self, names: Iterable[str]) -> Assumed:
        """Return both forms after the names of what they are about."""
        named = ", ".join(names)
        return Assumed(f"{named}: {self.text}", f"{named}: {self.short}")


class AdjacencyWords(NamedTuple):
    """The texts that describe one adjacency, that is, which two data sets are neighbours."""

    #: The description for authors of documents.
    meaning: str
    #: The change that a guarantee hides, in the sentence of a certificate.
    change: str
    #: The assumption of a certificate that protects records, and of one that protects users.
    records: Assumed
    users: Assumed


ADJACENCIES: dict[Adjacency, AdjacencyWords] = {
    "add-remove": AdjacencyWords(
        "one data set has one more record",
        "adding or removing {group}",
        Assumed(
            "Neighbouring data sets differ in {up_to} added, or {up_to} removed.",
            "Neighbouring data sets differ in {up_to} added or removed.",
        ),
        Assumed(
            "Neighbouring data sets differ in one user, all of whose records are added, or all removed.",
            "Neighbouring data sets differ in one user and all records, added or removed.",
        ),
    ),
    "zero-out": AdjacencyWords(
        "a record is replaced by an empty record",
        "replacing the contribution of {group} by zero",
        Assumed(
            "Neighbouring data sets differ in {up_to} whose {contributions} replaced by zero; the dataset size is public.",
            "Neighbours differ in {up_to} made zero; the size is public.",
        ),
        Assumed(
            "Neighbouring data sets differ in one user, all of whose records' contributions are replaced by zero.",
            "Neighbouring data sets differ in one user, all of whose records become zero.",
        ),
    ),
    "replace-one": AdjacencyWords(
        "a record is replaced by another record",
        "replacing {group} by {replacement}",
        Assumed(
            "Neighbouring data sets differ in {up_to} replaced by {replacement}.",
            "Neighbours differ in {up_to} replaced by {replacement}.",
        ),
        Assumed(
            "Neighbouring data sets differ in one user, who is replaced by another with other records.",
            "Neighbouring data sets differ in one user, replaced by another user.",
        ),
    ),
}

#: How a guarantee under another adjacency implies one under replace-one (proof: `plan.mechanisms.stated`).
TWO_STEPS: dict[Adjacency, str] = {
    "add-remove": "Replacing a record is removing it and adding another: two steps of the stated guarantee, under add-remove.",
    "zero-out": "Replacing a record is replacing its contribution by zero, and zero by the contribution of another: two steps "
    "of the stated guarantee, under zero-out.",
}

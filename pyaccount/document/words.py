"""The words that several kinds of documents share."""

from __future__ import annotations

from typing import Literal, NamedTuple

#: The version of the document language.
VERSION = 1

Adjacency = Literal["add-remove", "zero-out", "replace-one"]


class AdjacencyWords(NamedTuple):
    """The texts that describe one adjacency, that is, which two data sets are neighbours."""

    #: The description for authors of documents.
    meaning: str
    #: The change that a guarantee hides, in the sentence of a certificate.
    change: str
    #: The assumption of a certificate that protects records, and of one that protects users.
    records: str
    users: str


ADJACENCIES: dict[Adjacency, AdjacencyWords] = {
    "add-remove": AdjacencyWords(
        "one data set has one more record",
        "adding or removing {group}",
        "Neighbouring data sets differ in {up_to} added, or {up_to} removed.",
        "Neighbouring data sets differ in one user, all of whose records are added, or all removed.",
    ),
    "zero-out": AdjacencyWords(
        "a record is replaced by an empty record",
        "replacing the contribution of {group} by zero",
        "Neighbouring data sets differ in {up_to} whose {contributions} replaced by zero; the dataset size is public.",
        "Neighbouring data sets differ in one user, all of whose records' contributions are replaced by zero.",
    ),
    "replace-one": AdjacencyWords(
        "a record is replaced by another record",
        "replacing {group} by {replacement}",
        "Neighbouring data sets differ in {up_to} replaced by {replacement}.",
        "Neighbouring data sets differ in one user, who is replaced by another with other records.",
    ),
}

#: How a guarantee under another adjacency implies one under replace-one (proof: `plan.mechanisms.stated`).
TWO_STEPS: dict[Adjacency, str] = {
    "add-remove": "Replacing a record is removing it and adding another: two steps of the stated guarantee, under add-remove.",
    "zero-out": "Replacing a record is replacing its contribution by zero, and zero by the contribution of another: two steps "
    "of the stated guarantee, under zero-out.",
}

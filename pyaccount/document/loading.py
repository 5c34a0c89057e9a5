"""Loads documents from files, bytes, mappings and other documents."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pyaccount.document.amplification import Amplification
from pyaccount.document.data_set import DataSet
from pyaccount.document.document import Document
from pyaccount.document.policy import Policy
from pyaccount.errors import DocumentError, Problem
from pyaccount.reading.fields import listed
from pyaccount.reading.nodes import Place, Table, find, from_value, located, value_under
from pyaccount.reading.overrides import Overrides, override
from pyaccount.reading.sources import Folders, Handed, not_a_mapping, tree_of
from pyaccount.reading.spelling import nearest_value
from pyaccount.reading.written import Written

#: The kinds of documents that state their kind.
KINDS = ("amplification", "data-set", "policy")
#: The kinds of output of pyaccount that people mistake for documents, each with the command that reads it.
NO_DOCUMENTS = {
    "certificate": (
        "it is a certificate, which `pyaccount report`, `check` and `verify` read; the certified document is in it, "
        "under `document`"
    ),
    "amplification-certificate": "it is a certificate of an amplification, which `pyaccount report` reads",
    "sweep": "it is a sweep, which `pyaccount sweep` and pyaccount.sweep run",
    "sweep-table": "it is the table of a sweep",
    "comparison": "it is a comparison of certificates, which `pyaccount compare` makes from documents",
}


def load(
    source: str | os.PathLike[str] | Handed | Mapping[str, Any] | Document,
    *,
    overrides: Overrides = (),
    folders: Folders = (),
) -> Document:
    """Read and validate a mechanism document, or apply overrides to one that was read.

    Args:
        source: The path of a YAML file, a mapping with the same contents, or a document.
        overrides: Values to replace: a mapping of paths to values, as `{"privacy.epsilon": 4}`, or a list of `path=value`
            strings, as after `--set`, and (path, value) pairs.
        folders: Folders in which the files that the document names may lie, besides the document's own folder. That of a
            mapping is the working folder. No file elsewhere is read, whether its path is absolute, leads upwards, or is a link.

    Raises `DocumentError`, with every problem and its line and column, and `TypeError` if the source has another type.
    """
    document = load_any(source, overrides=overrides, folders=folders)
    if isinstance(document, Document):
        return document
    raise _no_mechanism(document, "document of kind amplification", "`pyaccount certify` and pyaccount.certify")


def load_any(
    source: str | os.PathLike[str] | Handed | Mapping[str, Any] | Written,
    *,
    overrides: Overrides = (),
    folders: Folders = (),
) -> Document | Amplification:
    """Load a document that describes something to be certified: a mechanism or an amplification. Raises as `load`."""
    if isinstance(source, Document | Amplification) and not overrides and not folders:
        # The document was validated already, and nothing in it changes.
        return source
    document = load_written(source, overrides=overrides, folders=folders)
    if isinstance(document, Policy):
        raise _no_mechanism(document, "policy", "`pyaccount check --policy` and pyaccount.check(policy=…)")
    if isinstance(document, DataSet):
        raise _no_mechanism(document, "data set", "`pyaccount ledger create` and pyaccount.Ledger")
    return document


def _no_mechanism(document: Written, what: str, readers: str) -> DocumentError:
    message = f"this is a {what}, not a mechanism; {readers} read it"
    return DocumentError([document.problem("unknown-kind", ("kind",), message)])


def load_written(
    source: str | os.PathLike[str] | Handed | Mapping[str, Any] | Written,
    *,
    overrides: Overrides = (),
    folders: Folders = (),
) -> Document | Amplification | Policy | DataSet:
    """Load a document of any kind; a document without a kind describes a mechanism. Raises as `load`."""
    file, root, problems = tree_of(source)
    root, more = override(root, overrides)
    problems = [*problems, *more]
    if not isinstance(root, Table):
        raise DocumentError([*problems, not_a_mapping(root, file)])
    word = value_under(root, "kind")
    if isinstance(word, str) and word in NO_DOCUMENTS and find(root, ("training",)) is None:
        problem = Problem("unknown-kind", f"this is not a document: {NO_DOCUMENTS[word]}", ("kind",))
        raise DocumentError([*problems, located(root, problem)])
    if "vary" in root.entries:
        problem = Problem("unknown-key", "this is a sweep, which `pyaccount sweep` and pyaccount.sweep run", ("vary",))
        raise DocumentError([*problems, located(root, problem, key=True)])
    if not isinstance(word, str) or nearest_value(word, KINDS) is None:
        kept = source.folders if isinstance(source, Document) else ()
        return Document(root, file, problems, [*map(os.fsdecode, folders), *kept])
    if word not in KINDS:
        message = f"no document of this kind exists: must be {listed(KINDS)}, or, for a mechanism, no kind"
        suggestion = nearest_value(word, KINDS)
        problem = Problem("unknown-kind", message, ("kind",), allowed=listed(KINDS), suggestion=suggestion)
        raise DocumentError([*problems, located(root, problem)])
    shapes: dict[str, type[Policy | DataSet]] = {"policy": Policy, "data-set": DataSet}
    return shapes.get(word, Amplification)(root, file, problems)


def placed(mapping: Mapping[str, Any], file: str, folders: Folders = ()) -> Document:
    """Return the mechanism document of a mapping that stands for a file: the files that it names are looked for beside that."""
    root, problems = from_value(mapping, Place(file))
    assert isinstance(root, Table), "a mapping is a table"
    return Document(root, file, problems, [*map(os.fsdecode, folders)])

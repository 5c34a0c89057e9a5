"""Finds the run of a document in a store, by everything that its certificate is computed from."""

from __future__ import annotations

import hashlib
import json
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyaccount.certificate.identity import identity
from pyaccount.certificate.provenance import versions
from pyaccount.errors import StoreError
from pyaccount.plan.contents import contents_of
from pyaccount.plan.protection import Protection
from pyaccount.store.database import Store

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pyaccount.certificate import Certificate
    from pyaccount.document.document import Document
    from pyaccount.store.database import Run

#: Whether a run stops when its store fails, or continues without it.
Strictness = Literal["stop", "continue"]


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The place of a document's run in a store; `finished` is the certificate that is stored there, if there is one."""

    store: Store
    key: str
    finished: Certificate | None

    def finish(self, certificate: Certificate) -> None:
        """Store the certificate, unless a time limit left something out of it that can still be computed."""
        if certificate.data.not_computed:
            return
        try:
            self.store.keep(
                self.key,
                name=certificate.data.name,
                versions=json.dumps(versions(), sort_keys=True),
                certificate=certificate.to_json(),
            )
        except StoreError as error:
            # The certificate was computed, so the caller gets it even though it cannot be stored.
            _warn(error)


def certificate_of(run: Run) -> Certificate:
    """Return the certificate of a run. Raises `StoreError` or `CertificateError` if it was changed."""
    from pyaccount.certificate import Certificate  # imported here because only finished runs need it
    from pyaccount.certificate.reading import parse_certificate

    if run.damaged:
        raise StoreError(
            f"what the store has of run {run.id[:12]} is damaged; remove that run, by Store.remove or `pyaccount runs --remove`"
        )
    return Certificate(parse_certificate(run.certificate.encode(), f"run {run.id[:12]}").certificate())


@contextmanager
def kept_in(
    store: Store | str | os.PathLike[str], document: Document, seed: int | None, errors: Strictness
) -> Iterator[KeptRun | None]:
    """Open a store, given as such or as its file, and yield the run of a document in it.

    `seed` is the requested seed, if any. If the store fails and `errors` is "continue", this yields `None` with a
    warning; otherwise it raises `StoreError`.
    """
    with ExitStack() as stack:
        try:
            opened = store if isinstance(store, Store) else stack.enter_context(Store(store))
            key = _key(document, seed)
            run = opened.run(key)
            if run is None:
                opened.check_writable()
            kept: KeptRun | None = KeptRun(opened, key, None if run is None else certificate_of(run))
        except StoreError as error:
            if errors == "stop":
                raise
            _warn(error)
            kept = None
        yield kept


def _key(document: Document, seed: int | None) -> str:
    """Return the hash of a run's inputs: equal keys have the same certificate, or one of another fresh seed."""
    # Fingerprints of what was read for this plan, because the files may have changed since.
    files = [sha256 for case in Protection.of(document).runs() for sha256 in contents_of(case).values()]
    computed_from = {"document": document.sha256, "files": files, "versions": identity(), "seed": seed}
    return hashlib.sha256(json.dumps(computed_from, sort_keys=True).encode()).hexdigest()


def _warn(error: StoreError) -> None:
    """Warn that a store has failed and that the run continues without it."""
    warnings.warn(f"{error}; the run goes on without it", stacklevel=2)

"""Finds the run of a document in a store, by everything that its certificate is computed from."""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.certificate.identity import identity
from pyaccount.certificate.provenance import versions
from pyaccount.errors import StoreError
from pyaccount.plan.contents import contents_of
from pyaccount.store.database import Store
from pyaccount.store.kept import Kept, warn

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pyaccount.certificate import Certificate
    from pyaccount.document.document import Document
    from pyaccount.execute.sampling.jobs import Runner
    from pyaccount.store.database import Run
    from pyaccount.store.kept import Strictness


@dataclass(frozen=True, slots=True)
class KeptRun:
    """The run of a document in a store: begun or finished, by this process or an earlier one."""

    store: Store
    run: Run
    errors: Strictness

    @property
    def seed(self) -> int:
        """The seed of all samples. It was chosen when the run was begun, and does not change."""
        return self.run.seed

    def runner(self, runner: Runner) -> Kept:
        """Return a runner that stores the waves of `runner`, and reads those that are stored."""
        return Kept(self.store, self.run.id, runner, self.errors)

    def finished(self) -> Certificate | None:
        """Return the stored certificate, or `None` if unfinished. Raises `CertificateError` if it was changed."""
        return certificate_of(self.run)

    def finish(self, certificate: Certificate) -> None:
        """Store the certificate, unless a time limit left something out of it that can still be computed."""
        if certificate.data.not_computed:
            return
        try:
            self.store.finish(self.run.id, certificate.to_json())
        except StoreError as error:
            # The certificate was computed, so the caller gets it even though it cannot be stored.
            warn(error)


def certificate_of(run: Run) -> Certificate | None:
    """Return the certificate of a run, or `None` if it is unfinished. Raises `CertificateError` or `StoreError`."""
    from pyaccount.certificate import Certificate  # imported here because only finished runs need it
    from pyaccount.certificate.reading import parse_certificate

    if run.damaged:
        raise StoreError(
            f"what the store has of run {run.id[:12]} is damaged; remove that run, by Store.remove or `pyaccount runs --remove`"
        )
    if run.certificate is None:
        return None
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
            kept: KeptRun | None = _begun(opened, document, seed, errors)
        except StoreError as error:
            if errors == "stop":
                raise
            warn(error)
            kept = None
        yield kept


def _begun(store: Store, document: Document, seed: int | None, errors: Strictness) -> KeptRun:
    """Begin or find a run by the hash of its inputs: equal keys have equal certificates, except for dates."""
    # Fingerprints of what was read for this plan, because the files may have changed since.
    files = [sha256 for body in document.every_body() for sha256 in contents_of(document, body).values()]
    computed_from = {"document": document.sha256, "files": files, "versions": identity(), "seed": seed}
    key = hashlib.sha256(json.dumps(computed_from, sort_keys=True).encode()).hexdigest()
    chosen = document.accounting.seed
    if chosen is None:
        chosen = secrets.randbits(64) if seed is None else seed
    run = store.begin(
        key,
        name=document.name,
        document=json.dumps(document.to_mapping(), sort_keys=True),
        versions=json.dumps(versions(), sort_keys=True),
        seed=chosen,
    )
    if run.damaged:
        certificate_of(run)
    return KeptRun(store, run, errors)

"""A run and its place in a store: by what its certificate is computed from."""

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
from pyaccount.plan.matrices import strategy
from pyaccount.store.database import Store
from pyaccount.store.kept import Kept, warn

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from pyaccount.certificate import Certificate
    from pyaccount.document import Document
    from pyaccount.execute.sampling.jobs import Runner
    from pyaccount.store.database import Run
    from pyaccount.store.kept import Strictness


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A document's run in a store: finished before, or begun, by this process or an earlier one."""

    store: Store
    run: Run
    errors: Strictness

    @property
    def seed(self) -> int:
        """Of everything that is sampled: it was chosen when the run was begun, and stays."""
        return self.run.seed

    def runner(self, runner: Runner) -> Kept:
        """The runner with its waves kept."""
        return Kept(self.store, self.run.id, runner, self.errors)

    def finished(self) -> Certificate | None:
        """The certificate, if the run was finished before. Raises `CertificateError` for one that was changed."""
        return certificate_of(self.run)

    def finish(self, certificate: Certificate) -> None:
        """Keep the certificate, unless a time limit has left something out of it: that can still be computed."""
        if certificate.data.not_computed:
            return
        try:
            self.store.finish(self.run.id, certificate.to_json())
        except StoreError as error:
            # The certificate is there: whoever asked for it gets it.
            warn(error)


def certificate_of(run: Run) -> Certificate | None:
    """The certificate of a run, if it is finished. Raises `CertificateError`."""
    from pyaccount.certificate import Certificate  # only finished runs have one
    from pyaccount.certificate.reading import parse

    if run.damaged:
        raise StoreError(
            f"what the store has of run {run.id[:12]} is damaged; remove that run, by Store.remove or `pyaccount runs --remove`"
        )
    if run.certificate is None:
        return None
    return Certificate(parse(run.certificate.encode(), f"run {run.id[:12]}").certificate())


@contextmanager
def kept_in(
    store: Store | str | os.PathLike[str], document: Document, seed: int | None, errors: Strictness
) -> Iterator[KeptRun | None]:
    """A document's run in a store, or in the file of one; None where that fails and the run is to go on without.

    `seed` is the one asked for, if any. Raises `StoreError`.
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
    """By everything that the certificate is computed from: equal keys have equal certificates, dates aside."""
    # Of what was read from them for this very plan: the files may be others by now.
    files = [strategy(document, body).fingerprint for body in document.bodies if body.matrix.files()]
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

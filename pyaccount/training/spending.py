"""The entry of a run in a ledger: reserved when the run is opened, begun before its first release, and committed at its end.

The identifier of the entry follows from the run's key, so that a run which is continued, in this process or another one, has one
entry. A run that was neither finished nor abandoned keeps its entry begun: it can be continued, or committed by hand.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyaccount.certificate import Certificate
from pyaccount.certificate.compared import is_certificate
from pyaccount.errors import DomainError, RunError, quoted

if TYPE_CHECKING:
    from pyaccount.ledger import Ledger, LedgerEntry
    from pyaccount.training.certified import Certified, RunSource
    from pyaccount.training.folder import RunFolder


#: How the identifiers of entries begin that runs have reserved themselves.
_OF_RUNS = "run-"


class Spending:
    """What a run spends of the budget of its data set."""

    def __init__(self, ledger: Ledger, entry: LedgerEntry, certificate: Certificate, folder: RunFolder) -> None:
        self._ledger, self.entry, self._certificate, self._folder = ledger, entry, certificate, folder
        #: Whether this object has begun the entry, or found that its run did before.
        self._begun = False

    def begin(self) -> None:
        """Begin the entry for this run, unless the run did so before. Nothing may be released if this raises.

        The ledger is asked once by each object. If somebody commits the entry while the run goes on, it keeps its whole price,
        which covers all rounds of the run.
        """
        if not self._begun:
            self.entry = self._ledger.begin(self.entry, run=self._run)
            self._begun = True

    @property
    def _run(self) -> str:
        """The hash of the first line of the record, which identifies the run."""
        from pyaccount.ledger.changing import read_record

        return read_record(self._folder.path).run

    def end(self) -> None:
        """Commit the entry with the record of the run, if the run has ended for good; call it when the record is closed."""
        if (
            self.entry.state == "begun"
            and self.entry.run == self._run
            and self._folder.recorded.ending in ("exhausted", "abandoned")
        ):
            record = self._folder.path
            self.entry = self._ledger.commit(self.entry, self._certificate, record=record)


def spending_of(  # noqa: PLR0913 - a run, and what it is entered as
    ledger: Ledger | str | os.PathLike[str],
    run: Certified,
    source: RunSource,
    folder: RunFolder,
    *,
    data_set: str | None,
    blocks: Sequence[str],
    entry: str | None,
) -> Spending:
    """Return the entry of a run: the one named, the one that was made for it before, or a new reservation.

    Raises `RunError` for a run without a certificate, or if an entry of its document was reserved by hand, which would be charged
    beside a new one; and the errors of `Ledger.reserve`.
    """
    from pyaccount.ledger import Ledger  # few runs have one
    from pyaccount.ledger.planning import of_certificate

    opened = Ledger(ledger) if isinstance(ledger, str | os.PathLike) else ledger
    certificate = _certificate_of(run, source)
    if entry is not None:
        found, this = opened.entry(entry), of_certificate(certificate)
        if (found.document_sha256, found.phases_sha256) != (this.document_sha256, this.phases_sha256):
            raise DomainError(
                f"entry = {entry!r}: this entry was reserved for {found.name} (document {found.document_sha256[:12]}) with the "
                f"values that were known then, and the run is of the document {this.document_sha256[:12]}: give the entry of "
                "this run"
            )
        return Spending(opened, found, certificate, folder)
    identity = f"{_OF_RUNS}{folder.key.commitment[:16]}"
    known = opened.entries_of(certificate, data_set=data_set)
    waiting = [one for one in known if one.state == "reserved" and not one.id.startswith(_OF_RUNS)]
    if waiting and all(one.id != identity for one in known):
        first = waiting[0]
        raise RunError(
            f"{quoted(first.who)} has reserved {first.id} of this document for {quoted(first.purpose)}, and a new entry is "
            f"charged beside it: give entry={first.id!r} to spend it on this run, or reserve another one and give that"
        )
    reserved = opened.reserve(
        certificate,
        who=_user(),
        purpose=run.document.name,
        data_set=data_set,
        blocks=blocks,
        id=identity,
    )
    return Spending(opened, reserved, certificate, folder)


def _certificate_of(run: Certified, source: RunSource) -> Certificate:
    if isinstance(source, Certificate):
        return source
    if isinstance(source, str | os.PathLike) and is_certificate(source):
        return Certificate.load(source)
    if run.certificate is None:
        raise RunError("a ledger counts certified runs, and this one has no certificate: leave uncertified out")
    return Certificate.from_json(run.certificate)


def _user() -> str:
    """Return the name of the user whose process this is."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user that has no name.
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"

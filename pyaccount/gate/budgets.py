"""The budget of a data set as a requirement on certificates: what a ledger says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyaccount.certificate.certificate import Certificate
from pyaccount.errors import BudgetError, CertificateError, DocumentError, LedgerError
from pyaccount.gate.verdict import Rule

if TYPE_CHECKING:
    from pyaccount.certificate.reading import Read
    from pyaccount.ledger import Ledger


class AskedBudget(NamedTuple):
    """A ledger in which certificates must be entered, or into which they must fit, and who requires it."""

    origin: str
    ledger: Ledger
    #: The data set; None for the only one of the ledger.
    data_set: str | None

    @property
    def proves(self) -> bool:
        """Whether limits are for what is proven independently."""
        return False

    def rule(self, read: Read) -> Rule:
        """Return whether the budget of the data set holds with a certificate.

        It passes if the ledger has an entry for its document, with the values of the certificate, that was not given back; or if
        such an entry would fit alone. Raises `LedgerStorageError`, and `LedgerError` for a data set that does not exist.
        """
        limit = f"{self.data_set or 'the data set'} in {self.ledger.place}"
        name = self.ledger.data_set(self.data_set).name
        try:
            admission = self.ledger.admission(Certificate(read.certificate()), data_set=name)
        except (BudgetError, CertificateError, DocumentError, LedgerError) as error:
            problems = getattr(error, "problems", ())
            remark = "\n".join(problem.message for problem in problems) or str(error)
            return Rule("budget", self.origin, limit, "does not fit", False, remark)
        if admission.entry is not None:
            entry = admission.entry
            return Rule("budget", self.origin, limit, f"entry {entry.id}, {entry.state}", True, None)
        remark = f"it is not entered: reserve it before its run. Alone it would fit ({admission.words})"
        return Rule("budget", self.origin, limit, "would fit", True, remark)

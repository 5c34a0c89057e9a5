"""pyaccount: a differential-privacy accountant.

The common question, how much noise DP-SGD needs, or what ε it has, takes one line:

```python
import pyaccount

pyaccount.dp_sgd(epsilon=8, delta=1e-5, sampling_probability=0.01, iterations=2000).noise_multiplier
pyaccount.dp_sgd(noise_multiplier=1, delta=1e-5, sampling_probability=0.01, iterations=2000).epsilon
```

Everything else is a mechanism document, with one blank in it (`"solve"`), which `certify` computes: `help(pyaccount.certify)`.
`load` reads a document, `compile` plans its analysis, `certify` does both and runs the plan; a `Certificate` comes out. `check`
compares certificates with limits, `verify` recomputes them, `compose` joins them. The README has the document language.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant
    from pyaccount.attestation.signing import attest
    from pyaccount.attestation.statement import Attestation
    from pyaccount.auditing.audit import audit
    from pyaccount.auditing.report import Audit
    from pyaccount.certificate import Certificate, Interval, Profile
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.certificate.comparison import Comparison
    from pyaccount.certificate.matrix_description import MatrixDescription
    from pyaccount.data.prepare import Prepared, prepare
    from pyaccount.document.document import Document
    from pyaccount.errors import (
        AttestationError,
        BudgetError,
        CardError,
        CardMismatchError,
        CertificateError,
        ClusterError,
        DocumentError,
        DomainError,
        LedgerError,
        LedgerStorageError,
        LimitError,
        MissingExtraError,
        NumericsError,
        PlanExceededError,
        Problem,
        PyaccountError,
        RunError,
        StateError,
        StoreError,
        TableError,
    )
    from pyaccount.gate.check import check
    from pyaccount.gate.verdict import Verdict
    from pyaccount.gate.verification import Verification
    from pyaccount.gate.verify import verify
    from pyaccount.ledger import Ledger
    from pyaccount.running import Plan
    from pyaccount.running.dp_sgd import dp_bandmf, dp_sgd
    from pyaccount.running.public import amplify, certify, certify_async, compare, compile, compose, load, matrix
    from pyaccount.store import Store
    from pyaccount.sweeping import Sweep
    from pyaccount.sweeping.run import sweep
    from pyaccount.training import TrainingRun

__all__ = [
    "Accountant",
    "AmplificationCertificate",
    "Attestation",
    "AttestationError",
    "Audit",
    "BudgetError",
    "CardError",
    "CardMismatchError",
    "Certificate",
    "CertificateError",
    "ClusterError",
    "Comparison",
    "Document",
    "DocumentError",
    "DomainError",
    "Interval",
    "Ledger",
    "LedgerError",
    "LedgerStorageError",
    "LimitError",
    "MatrixDescription",
    "MissingExtraError",
    "NumericsError",
    "Plan",
    "PlanExceededError",
    "Prepared",
    "Problem",
    "Profile",
    "PyaccountError",
    "RunError",
    "StateError",
    "Store",
    "StoreError",
    "Sweep",
    "TableError",
    "TrainingRun",
    "Verdict",
    "Verification",
    "amplify",
    "attest",
    "audit",
    "certify",
    "certify_async",
    "check",
    "compare",
    "compile",
    "compose",
    "dp_bandmf",
    "dp_sgd",
    "load",
    "matrix",
    "prepare",
    "sweep",
    "verify",
]

# Before any thread can be in the middle of an import.
import_module("pyaccount.forks")

#: Where each public name lives; modules load when a name is first used, so that importing pyaccount costs nothing.
_HOMES = {
    name: f"pyaccount.{module}"
    for module, names in {
        "accountant": "Accountant",
        "attestation.signing": "Attestation attest",
        "auditing.audit": "audit",
        "auditing.report": "Audit",
        "certificate": "Certificate Interval Profile",
        "certificate.amplification": "AmplificationCertificate",
        "certificate.comparison": "Comparison",
        "certificate.matrix_description": "MatrixDescription",
        "data.prepare": "Prepared prepare",
        "document.document": "Document",
        "gate.check": "check",
        "gate.verdict": "Verdict",
        "gate.verification": "Verification",
        "gate.verify": "verify",
        "ledger": "Ledger",
        "running": "Plan",
        "running.dp_sgd": "dp_bandmf dp_sgd",
        "running.public": "amplify certify certify_async compare compile compose load matrix",
        "store": "Store",
        "sweeping": "Sweep",
        "sweeping.run": "sweep",
        "training": "TrainingRun",
        "errors": " ".join(name for name in __all__ if name == "Problem" or name.endswith("Error")),
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        # A file with all of the package's metadata is read for it.
        from importlib.metadata import version

        from pyaccount.errors import DISTRIBUTION

        return version(DISTRIBUTION)
    raise AttributeError(f"module 'pyaccount' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__")), "__version__"])

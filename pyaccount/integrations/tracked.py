"""What a tracker of experiments gets of a certificate: parameters, metrics and files, with the same names in each tracker."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from pyaccount.certificate.certificate import Certificate as Certified
from pyaccount.integrations.facts import bounds, circumstances, stated

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant
    from pyaccount.certificate import Certificate

#: The name of ε of the rounds so far.
SO_FAR = "epsilon_so_far_upper"


class Tracked(NamedTuple):
    """What is logged about a certificate."""

    statement: str
    #: What the numbers are about, and whether the claim holds.
    parameters: dict[str, str | int | bool]
    #: Each number by a name that ends with the bound that it is: `_upper` or `_lower`.
    metrics: dict[str, float]
    #: Text files by name: the certificate, and a report for people.
    files: dict[str, str]


def tracked(certificate: str | os.PathLike[str] | Certificate) -> Tracked:
    """Return what is logged about a certificate, which may also be one of a claim that fails. Raises `CertificateError`."""
    known = stated(certificate, failing=True)
    one = Certified(known.data)
    parameters = {**circumstances(known.data), "holds": known.data.holds, "certificate_sha256": known.sha256}
    text = one.to_json() if isinstance(certificate, Certified) else _text(certificate)
    files = {"certificate.json": text, "report.html": one.to_html()}
    return Tracked(known.data.statement, parameters, bounds(known.data), files)


def spent(accountant: Accountant) -> tuple[float, int, str]:
    """Return an upper bound on ε of the rounds so far (nats), how many they are, and the state of the accountant as JSON text.

    The bound is that of a run which was planned to end here; `docs/embedding.md` says what this means.
    """
    state = json.dumps(accountant.state_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return accountant.epsilon_spent(), accountant.steps, state


def _text(file: str | os.PathLike[str] | Certificate) -> str:
    """Return the text of a certificate's file, so that its digest stays."""
    assert isinstance(file, str | os.PathLike)
    with open(file, encoding="utf-8", newline="") as stream:  # noqa: PTH123 - a name of any kind
        return stream.read()

"""One forged certificate: how it is made from a seed, what the checker says of it, and whether that is wrong."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from forging.certificates import DOCUMENT, STATED, Claim, Json, claim, claiming, text
from forging.changes import Changes
from forging.checking import NO_CERTIFICATE, VERDICTS, Answer, Checker
from forging.house import House, Refused
from forging.starts import Start
from pyaccount.errors import PyaccountError

#: The checker proves δ up to this factor, which docs/independent.md states.
SLACK = 1.001
#: A claim so large that nearly everything that is read at all is proven.
LARGE = Claim(60.0, 0.5)
#: Seconds that a process of its own may take beyond the limit, to begin and to end beside other work.
MARGIN = 5.0


@dataclass
class Forgery:
    """A forged certificate, and what came of it."""

    certificate: Json
    #: What was changed, and how the claim was chosen.
    how: list[str]
    answer: Answer = field(default_factory=lambda: Answer("", None, 0.0))
    #: Whether the house takes the document for one; None if it was not asked.
    document: bool | None = None
    #: What is true of a claim that is proven: true, false, undecided, or no document.
    truth: str = ""
    #: What is wrong with the verdict.
    fault: str = ""


class Forger:
    """Makes forgeries of certificates, and judges them."""

    def __init__(self, changes: Changes, checker: Checker, house: House) -> None:
        self.changes, self.checker, self.house = changes, checker, house

    def enumerated(self, start: Start, rng: random.Random) -> Forgery:
        """Judge the certificate of a case with a claim that enumerated data sets refute."""
        wanted = rng.choice(start.false)
        found = Forgery(claiming(start.certificate, wanted), ["a claim that data sets refute"], document=True)
        found.answer = self.checker.answer(text(found.certificate))
        if found.answer.verdict == "proven":
            found.truth = found.fault = f"false: data sets attain more than δ({wanted.epsilon}) = {wanted.delta}"
        return self._regular(found)

    def unchanged(self, start: Start) -> Forgery:
        """Judge the certificate as the house issued it: it must not be refuted."""
        found = Forgery(start.certificate, ["nothing"], document=True)
        found.answer = self.checker.answer(text(found.certificate))
        found.truth = "true"
        if found.answer.verdict == "refuted" and found.certificate.get("holds"):
            found.fault = f"a true certificate is refuted: {found.answer.reason}"
        return self._regular(found)

    def changed(self, start: Start, rng: random.Random, *, apart: bool) -> Forgery:
        """Judge a certificate with changed structure, as it is checked in one process, or also by the checker's command."""
        found = self._forged(start.certificate, rng)
        written = text(found.certificate)
        found.answer = self.checker.answer(written)
        if found.answer.verdict == "proven":
            found.truth = self._truth(found.certificate)
            if found.truth.startswith(("false", "no document")):
                found.fault = found.truth
        if apart:
            other = self.checker.apart(written)
            if other.seconds > self.checker.limit + MARGIN:
                found.fault = found.fault or f"{other.seconds:.1f} s with a limit of {self.checker.limit} s"
            if other.verdict != found.answer.verdict and not (other.ended or found.answer.ended):
                found.fault = found.fault or f"{found.answer.verdict} in one process, {other.verdict} in another"
        return self._regular(found)

    def _regular(self, found: Forgery) -> Forgery:
        if found.answer.verdict not in (*VERDICTS, NO_CERTIFICATE):
            found.fault = f"{found.answer.verdict}: {found.answer.reason}"
        return found

    def _forged(self, certificate: Json, rng: random.Random) -> Forgery:
        stated = {key: certificate[key] for key in STATED if certificate.get(key)}
        if rng.random() < 0.15 and stated:
            part = rng.choice(sorted(stated))
            tree, how = self.changes.changed({part: certificate[part]}, rng)
            forged, how = {**certificate, part: None, **tree}, [f"{part}: {one}" for one in how]
        else:
            tree, how = self.changes.changed(certificate[DOCUMENT], rng)
            forged = {**certificate, DOCUMENT: tree}
        if rng.random() < 0.5 and DOCUMENT in forged:
            # What a careful forger states beside the document is what the document says.
            privacy = forged[DOCUMENT].get("privacy")
            if isinstance(privacy, dict):
                said = {key: privacy[key] for key in ("adjacency", "group_size") if key in privacy}
                forged["privacy"] = {"group_size": 1, "unit": "record", **said}
        found = Forgery(forged, how)
        self._claim(found, rng)
        return found

    def _claim(self, found: Forgery, rng: random.Random) -> None:
        """Choose what is claimed: as before, less, just below what the core proves, or much where there is no document."""
        kept = claim(found.certificate)
        way = rng.choice(["kept", "kept", "less", "less", "sharp", "sharp", "sharp"])
        try:
            document = self.house.document(found.certificate)
            found.document = True
        except Refused:
            found.document = False
            way = "much"
        if kept is None or way == "much":
            found.certificate = claiming(found.certificate, LARGE)
            found.how.append("much is claimed")
        elif way == "less":
            share, of_epsilon = rng.choice([0.0, 0.1, 0.5, 0.9, 0.99]), rng.random() < 0.5
            less = (
                kept._replace(epsilon=kept.epsilon * share) if of_epsilon else kept._replace(delta=kept.delta * share)
            )
            found.certificate = claiming(found.certificate, less)
            found.how.append("less is claimed")
        elif way == "sharp" and 0.0 <= kept.epsilon < 1e4 and (least := self._lower(document, kept.epsilon)) > 1e-290:
            found.certificate = claiming(found.certificate, kept._replace(delta=least * 0.99))
            found.how.append("just less than the core's lower end")
        else:
            found.how.append("the claim as it was")

    def _lower(self, document: Json, epsilon: float) -> float:
        """Return a lower bound of δ by the core, or 0."""
        try:
            bounds = self.house.delta(document, epsilon)
        except (Refused, PyaccountError, ArithmeticError):
            return 0.0
        return 0.0 if bounds is None else bounds.lower

    def _truth(self, certificate: Json) -> str:
        """Return whether a claim that was proven is true."""
        wanted = claim(certificate)
        if wanted is None:
            return "no document: there is no claim"
        try:
            document = self.house.document(certificate)
            bounds = self.house.delta(document, wanted.epsilon)
        except Refused as error:
            return f"no document: {error}"
        except (PyaccountError, ArithmeticError) as error:
            return f"undecided: {type(error).__name__}: {error}"[:200]
        if bounds is None:
            return "undecided: time"
        if bounds.lower > wanted.delta * SLACK + 1e-300:
            return f"false: δ({wanted.epsilon}) is at least {bounds.lower:.9g}, claimed {wanted.delta:.9g}"
        return (
            "true"
            if bounds.upper <= wanted.delta * SLACK
            else f"undecided: up to {bounds.upper / max(wanted.delta, 1e-300):.4g} times"
        )


def line(found: Forgery) -> dict[str, Any]:
    """Return what is written about a forgery."""
    return {
        "fault": found.fault, "how": found.how, "claim": claim(found.certificate), "verdict": found.answer.verdict,
        "document": found.certificate.get(DOCUMENT), "solved": found.certificate.get("solved"),
    }  # fmt: skip

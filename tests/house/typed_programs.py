"""Programs of users, which only `make check` reads: strict types accept the right one and tell each mistake of the wrong one."""

from pathlib import Path

import pyaccount


def right(folder: Path) -> bool:
    certificate: pyaccount.Certificate = pyaccount.certify(folder / "training.yaml", overrides=["privacy.epsilon=4"])
    epsilon: float = certificate.epsilon
    interval = certificate.profile.delta(epsilon)
    width: float = interval.upper - interval.lower
    columns: dict[str, list[float | None]] = certificate.profile.to_dict()
    certificate.save(folder / "training.cert.json")
    made: pyaccount.Attestation = pyaccount.attest(
        folder / "training.cert.json", [folder / "model"], folder / "key.pem"
    )
    made.save(folder / "training.att.json")
    subjects = [folder / "model"]
    verdict: pyaccount.Verdict = pyaccount.check(
        attestation=made, trusted_keys=folder, subjects=subjects, no_limits=True
    )
    try:
        found: pyaccount.Verification = pyaccount.verify(
            attestation=folder / "training.att.json", trusted_keys=folder, any_subject=True
        )
    except pyaccount.AttestationError:
        return False
    return verdict.passes and found.agrees and width < 1.0 and len(columns) > 2


def wrong() -> str:
    pyaccount.certify("a.yaml").epsilon.upper  # type: ignore[union-attr]  # noqa: B018
    pyaccount.check("a.json", trusted_keys=3)  # type: ignore[arg-type]
    pyaccount.attest("a.json", ["model"])  # type: ignore[call-arg]
    certificate: str = pyaccount.Certificate.load("a.json")  # type: ignore[assignment]
    return certificate

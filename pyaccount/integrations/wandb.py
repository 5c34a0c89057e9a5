"""Weights & Biases: a certificate in a run, in its configuration, its summary and as an artifact.

Needs `pip install "pyaccount-dp[wandb]"`. With `WANDB_MODE=offline` nothing leaves the machine.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pyaccount.errors import DomainError, MissingExtraError
from pyaccount.integrations.facts import SO_FAR, spent, tracked

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant
    from pyaccount.certificate import Certificate

#: The prefix of names in the run, which groups them in its pages.
PREFIX = "privacy/"
#: The type of the artifacts.
ARTIFACT = "privacy-certificate"


def log_certificate(certificate: str | os.PathLike[str] | Certificate, *, run: Any = None) -> None:
    """Log a certificate in a run of Weights & Biases.

    Args:
        certificate: A certificate's JSON file, or a certificate in memory. Its claim need not hold: `privacy/holds` says so.
        run: The run [the one that wandb.init began last].

    The summary has the bounds by name: `privacy/epsilon_upper`, `privacy/epsilon_lower` (nats), and the same for δ and for the
    failure probability. The configuration has what they are about. The artifact, of type `privacy-certificate`, has
    `certificate.json` and `report.html`. Raises `CertificateError`, `MissingExtraError`, and `DomainError` if there is no run.
    """
    known = tracked(certificate)
    library, run = _run(run)
    parameters = {**known.parameters, "statement": known.statement}
    run.config.update({PREFIX + name: value for name, value in parameters.items()}, allow_val_change=True)
    run.summary.update({PREFIX + name: value for name, value in known.metrics.items()})
    name = f"certificate-{known.parameters['document_sha256']}"[:64]
    artifact = library.Artifact(re.sub(r"[^\w.-]", "-", name), ARTIFACT, metadata={**parameters, **known.metrics})
    for file, text in known.files.items():
        with artifact.new_file(file, encoding="utf-8") as stream:
            stream.write(text)
    run.log_artifact(artifact)


def log_spent(accountant: Accountant, *, run: Any = None) -> float:
    """Log the upper bound on ε of the rounds so far as `privacy/epsilon_so_far_upper`, over `privacy/rounds`.

    Args:
        accountant: The accountant of the training loop.
        run: The run [the one that wandb.init began last].

    Returns the bound, in nats: it is that of a run which was planned to end here. Raises what `Accountant.epsilon_spent` raises,
    `MissingExtraError`, and `DomainError` if there is no run.
    """
    epsilon, steps, _ = spent(accountant)
    _, run = _run(run)
    run.define_metric(PREFIX + SO_FAR, step_metric=f"{PREFIX}rounds")
    run.log({PREFIX + SO_FAR: epsilon, f"{PREFIX}rounds": steps})
    return epsilon


def _run(run: Any) -> tuple[Any, Any]:
    """Return the library, and the run."""
    try:
        import wandb  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
    except ImportError as error:
        raise MissingExtraError.of("wandb", "runs of Weights & Biases need it") from error
    if run is None:
        run = wandb.run
    if run is None:
        raise DomainError("`run` is not given and none was begun: begin one with wandb.init()")
    return wandb, run

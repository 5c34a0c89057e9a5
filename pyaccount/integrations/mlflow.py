"""MLflow: a certificate in a run, as parameters, metrics and artifacts.

Needs `pip install "pyaccount-dp[mlflow]"`, or mlflow; `MLFLOW_TRACKING_URI` says where runs are stored.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pyaccount.errors import DomainError, MissingExtraError
from pyaccount.integrations.facts import SO_FAR, spent, tracked

if TYPE_CHECKING:
    from pyaccount.accountant import Accountant
    from pyaccount.certificate import Certificate

#: The prefix of names in the run, and the folder of the artifacts.
PREFIX, FOLDER = "privacy.", "privacy"


def log_certificate(
    certificate: str | os.PathLike[str] | Certificate, *, run_id: str | None = None, folder: str = FOLDER
) -> None:
    """Log a certificate in a run of MLflow.

    Args:
        certificate: A certificate's JSON file, or a certificate in memory. Its claim need not hold: `privacy.holds` says so.
        run_id: The run [the active one].
        folder: The folder of the artifacts `certificate.json` and `report.html`.

    Metrics are named as bounds: `privacy.epsilon_upper`, `privacy.epsilon_lower` (nats), and the same for δ and for the failure
    probability. The sentence of the certificate is the tag `privacy.statement`. Raises `CertificateError`, `MissingExtraError`,
    and `DomainError` if there is no run.
    """
    known = tracked(certificate)
    client, run = _client(run_id)
    client.set_tag(run, f"{PREFIX}statement", known.statement)
    for name, value in known.parameters.items():
        client.log_param(run, PREFIX + name, value)
    for name, number in known.metrics.items():
        client.log_metric(run, PREFIX + name, number)
    for name, text in known.files.items():
        client.log_text(run, text, f"{folder}/{name}")


def log_spent(accountant: Accountant, *, run_id: str | None = None, folder: str = FOLDER) -> float:
    """Log the upper bound on ε of the rounds so far as `privacy.epsilon_so_far_upper`, and the accountant's state as an artifact.

    Args:
        accountant: The accountant of the training loop. Its number of rounds is the step of the metric.
        run_id: The run [the active one].
        folder: The folder of the artifact `accountant.json`.

    Returns the bound, in nats: it is that of a run which was planned to end here. Raises what `Accountant.epsilon_spent` raises,
    `MissingExtraError`, and `DomainError` if there is no run.
    """
    epsilon, steps, state = spent(accountant)
    client, run = _client(run_id)
    client.log_metric(run, PREFIX + SO_FAR, epsilon, step=steps)
    client.log_text(run, state, f"{folder}/accountant.json")
    return epsilon


def _client(run_id: str | None) -> tuple[Any, str]:
    """Return MLflow's client, and the run."""
    try:
        import mlflow
    except ImportError as error:
        raise MissingExtraError.of("mlflow-skinny", "runs of MLflow need it") from error
    if run_id is None:
        active = mlflow.active_run()
        if active is None:
            raise DomainError("`run_id` is not given and no run is active: begin one with mlflow.start_run()")
        run_id = str(active.info.run_id)
    return mlflow.MlflowClient(), run_id

"""A certificate in an MLflow run: parameters, metrics that say which bound they are, the certificate and its report.

    python examples/integrations/mlflow_log.py examples/cifar10-dp-sgd.yaml

Needs `pip install mlflow-skinny`. `MLFLOW_TRACKING_URI` says where to.
"""

from __future__ import annotations

import sys

import mlflow

import pyaccount


def log_certificate(certificate: pyaccount.Certificate, folder: str = "privacy") -> None:
    """Log a certificate to the active run. A bound is named as one: `…_upper` and `…_lower`, never a bare ε."""
    data = certificate.data
    guarantee = data.guarantee
    mlflow.set_tag("privacy.statement", certificate.statement)
    mlflow.log_params(
        {
            "privacy.adjacency": data.privacy.adjacency,
            "privacy.unit": data.privacy.unit,
            "privacy.group_size": data.privacy.group_size,
            "privacy.guarantee": guarantee.kind,
            "privacy.holds": certificate.holds,
            "privacy.document_sha256": data.document_sha256,
            "privacy.samplers": ", ".join(phase.sampler for phase in data.phases),
            "privacy.noise_multipliers": ", ".join(str(phase.noise_multiplier) for phase in data.phases),
        }
    )
    mlflow.log_metrics(
        {
            "privacy.epsilon_upper": guarantee.epsilon,
            "privacy.epsilon_lower": guarantee.epsilon_lower,
            "privacy.delta_upper": guarantee.delta,
            "privacy.delta_lower": guarantee.delta_lower,
            "privacy.failure_probability_upper": guarantee.failure_probability,
        }
    )
    mlflow.log_text(certificate.to_json(), f"{folder}/certificate.json")
    mlflow.log_text(certificate.to_html(), f"{folder}/report.html")


def main(source: str) -> None:
    certificate = pyaccount.certify(source)
    with mlflow.start_run(run_name=certificate.data.name):
        log_certificate(certificate)
        # The way there: ε of the rounds so far, were the run as long as that from the beginning.
        accountant = pyaccount.Accountant.from_certificate(certificate)
        rounds = accountant.planned_steps or 0
        # After each quarter, rounded up: a run of fewer than four rounds has fewer of them.
        for done in sorted({-(-rounds * quarter // 4) for quarter in range(1, 5)}):
            accountant.step(done - accountant.steps)
            mlflow.log_metric("privacy.epsilon_so_far_upper", accountant.epsilon_spent(), step=accountant.steps)
        mlflow.log_dict(accountant.state_dict(), "privacy/accountant.json")


if __name__ == "__main__":
    main(sys.argv[1])

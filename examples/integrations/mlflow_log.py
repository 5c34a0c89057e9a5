"""A certificate in an MLflow run: parameters, metrics that say which bound they are, the certificate and its report.

    python examples/integrations/mlflow_log.py examples/cifar10-dp-sgd.yaml

Needs `pip install "pyaccount-dp[mlflow]"`. `MLFLOW_TRACKING_URI` says where to.
"""

from __future__ import annotations

import sys

import mlflow

import pyaccount
from pyaccount.integrations.mlflow import log_certificate, log_spent


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
            log_spent(accountant)


if __name__ == "__main__":
    main(sys.argv[1])

"""A certificate in a run of Weights & Biases: bounds in the summary, the certificate and its report as an artifact.

    WANDB_MODE=offline python examples/integrations/wandb_log.py examples/cifar10-dp-sgd.yaml

Needs `pip install wandb`.
"""

from __future__ import annotations

import sys

import wandb

import pyaccount
from pyaccount.integrations.wandb import log_certificate, log_spent


def main(source: str) -> None:
    certificate = pyaccount.certify(source)
    with wandb.init(project="privacy", name=certificate.data.name):
        log_certificate(certificate)
        accountant = pyaccount.Accountant.from_certificate(certificate)
        rounds = accountant.planned_steps or 0
        for done in sorted({-(-rounds * quarter // 4) for quarter in range(1, 5)}):
            accountant.step(done - accountant.steps)
            log_spent(accountant)


if __name__ == "__main__":
    main(sys.argv[1])

"""A training run configured by Hydra: certify before the first step, count every step, save before it is used.

    python examples/integrations/hydra/train.py mechanism.privacy.epsilon=4
    python examples/integrations/hydra/train.py mechanism=full-batch trainer.steps=20

Needs pyaccount and hydra-core: `pip install --require-hashes -r privacy/requirements.txt`, where the requirements
pin a wheel of pyaccount by its hash, built from a commit you trust: the project of that name on the public index is another.
Writes the certificate, its report and the accountant's state into the run's folder.
"""

from __future__ import annotations

from pathlib import Path

import hydra
import numpy as np
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

import pyaccount
from pyaccount.records.certificate import PhaseRecord


@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config: DictConfig) -> None:
    folder = Path(HydraConfig.get().runtime.output_dir)
    document = OmegaConf.to_container(config.mechanism, resolve=True, throw_on_missing=True)
    certificate = pyaccount.certify(document)
    if not certificate.holds:
        raise SystemExit(certificate.statement)
    certificate.save(folder / "training.cert.json")
    (folder / "training.html").write_text(certificate.to_html(), encoding="utf-8")
    print(certificate.statement)

    accountant = pyaccount.Accountant.from_certificate(certificate)
    weights = train(config, certificate, accountant, folder / "accountant.json")
    print(
        f"{accountant.steps} steps, ε at most {accountant.epsilon_spent():.4f}, |weights| {np.linalg.norm(weights):.3f}"
    )


def only_phase(certificate: pyaccount.Certificate) -> PhaseRecord:
    """What the loop below does, or nothing: one run of Gaussian noise on Poisson batches, or on every record."""
    phase, *others = certificate.data.phases
    sampler = certificate.data.document.get("sampler", {})
    known = {
        "other phases": not others,
        f"{phase.sampler} sampling": phase.sampler in ("poisson", "none"),
        f"{' or '.join(set(sampler) - {'kind'})} of a sampler": set(sampler) <= {"kind"},
        f"{phase.matrix.kind} matrix": phase.matrix.kind == "identity",
        f"{phase.noise} noise": phase.noise == "gaussian",
        f"count of {phase.count} runs": phase.count == 1,
    }
    for what, does in known.items():
        if not does:
            raise SystemExit(f"this loop draws Poisson batches or takes every record, once; it knows no {what}")
    return phase


def train(
    config: DictConfig, certificate: pyaccount.Certificate, accountant: pyaccount.Accountant, state: Path
) -> np.ndarray:
    """DP-SGD on made-up records, with the sampler and the noise of the certificate."""
    phase = only_phase(certificate)
    records = np.random.default_rng(config.data.seed).normal(size=(config.data.records, 5))
    labels = (records.sum(axis=1) > 0).astype(float)
    # A seed nobody knows. A run that protects people needs a generator that cannot be predicted at all.
    secret = np.random.default_rng()
    probability = phase.sampling_probability if phase.sampling_probability is not None else 1.0
    clip = config.trainer.clip_norm
    weights = np.zeros(records.shape[1])
    while not accountant.would_exceed():
        drawn = secret.random(len(records)) < probability
        residual = 1 / (1 + np.exp(-records[drawn] @ weights)) - labels[drawn]
        gradients = residual[:, None] * records[drawn]
        gradients /= np.maximum(1.0, np.linalg.norm(gradients, axis=1, keepdims=True) / clip)
        noisy = gradients.sum(axis=0) + secret.normal(scale=phase.noise_multiplier * clip, size=weights.shape)
        # One release, one step: counted and saved before anything is done with it.
        accountant.step()
        accountant.save(state)
        weights -= config.trainer.learning_rate * noisy / (probability * len(records))
    return weights


if __name__ == "__main__":
    main()

"""ε of batches of a fixed size by Opacus, dp_accounting, jax_privacy and pyaccount, each for its own adjacency and sampler.

Run by hand in the environment of `make test-frameworks`, which has the peers. Prints the table of docs/results.md. What the peers
assume is said in their sources: Opacus counts every loader as Poisson sampling; dp_accounting has a bound by Rényi
divergences for batches without replacement (Wang, Balle & Kasiviswanathan 2019), whose noise multiplier is a multiple of the
distance of two sums, which a replaced record makes 2; jax_privacy takes Poisson sampling of a contribution that is doubled.
"""

import warnings

import dp_accounting
import jax_privacy.accounting as jax_accounting
from dp_accounting.rdp import RdpAccountant
from opacus.accountants import PRVAccountant

import pyaccount

DELTA, RECORDS = 1e-5, 1000
#: The part of the records in a batch, the noise multiplier and the rounds.
SETTINGS = [(0.01, 1.0, 500), (0.05, 2.0, 200), (0.01, 2.0, 5000), (0.5, 3.0, 100)]


def certified(part: float, sigma: float, rounds: int, adjacency: str) -> str:
    """Return the interval of ε that is certified."""
    training = {"dataset_size": RECORDS, "expected_batch_size": round(part * RECORDS), "iterations": rounds}
    document = {
        "pyaccount": 1,
        "name": "batches of a fixed size",
        "privacy": {"adjacency": adjacency, "epsilon": "solve", "delta": DELTA},
        "training": training,
        "sampler": {"kind": "fixed-size"},
        "noise": {"multiplier": sigma},
    }
    certificate = pyaccount.certify(document)
    return f"{certificate.epsilon_lower:.4f} to {certificate.epsilon:.4f}"


def opacus(part: float, sigma: float, rounds: int) -> float:
    """Return what `PrivacyEngine.get_epsilon` answers, also after `make_private(…, poisson_sampling=False)`."""
    accountant = PRVAccountant()
    accountant.history = [(sigma, part, rounds)]
    return float(accountant.get_epsilon(DELTA))


def renyi(part: float, sigma: float, rounds: int) -> float:
    """Return dp_accounting's ε; its noise multiplier is half of ours."""
    event = dp_accounting.SampledWithoutReplacementDpEvent(
        RECORDS, round(part * RECORDS), dp_accounting.GaussianDpEvent(sigma / 2.0)
    )
    accountant = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, rounds))
    return float(accountant.get_epsilon(DELTA))


def jax(part: float, sigma: float, rounds: int) -> float:
    """Return jax_privacy's ε for `SamplingMethod.FIXED_BATCH_SIZE`, with its accountant of privacy loss distributions."""
    parameters = jax_accounting.DpParams(
        noise_multipliers=sigma,
        num_samples=RECORDS,
        delta=DELTA,
        batch_size=round(part * RECORDS),
        sampling_method=jax_accounting.SamplingMethod.FIXED_BATCH_SIZE,
    )
    accountant = jax_accounting.DpsgdTrainingAccountant(jax_accounting.PldAccountantConfig())
    return float(accountant.compute_epsilon(rounds, parameters))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    head = ["q, σ, rounds", "replace-one, certified", "dp_accounting", "jax_privacy", "add-remove, certified", "Opacus"]
    print(f"| {' | '.join(head)} | zero-out, certified |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for setting in SETTINGS:
        part, sigma, rounds = setting
        ours = [certified(*setting, adjacency) for adjacency in ("replace-one", "add-remove", "zero-out")]
        print(
            f"| {part:g}, {sigma:g}, {rounds} | {ours[0]} | {renyi(*setting):.3f} | {jax(*setting):.3f} | {ours[1]} "
            f"| {opacus(*setting):.3f} | {ours[2]} |"
        )


if __name__ == "__main__":
    main()

"""The first question of README.md in Opacus, dp_accounting and pyaccount: σ for (8, 1e-5), p = 0.01, 2000 steps.

Prints σ and processor seconds, the least of several; pyaccount also as an accountant inside of the other two. Needs opacus (with
torch) and dp_accounting, which the environment of `make test-frameworks` has. Run by hand.
"""

import time
from collections.abc import Callable

import dp_accounting
from dp_accounting import dp_event, pld
from opacus.accountants.utils import get_noise_multiplier

import pyaccount
from pyaccount.integrations import opacus_accountant  # its import registers "pyaccount"
from pyaccount.integrations.dp_accounting import EventAccountant

EPSILON, DELTA, RATE, STEPS = 8.0, 1e-5, 0.01, 2000


def opacus(accountant: str) -> float:
    """Return σ by an accountant of Opacus, with its default tolerance of 0.01 in ε."""
    return get_noise_multiplier(
        target_epsilon=EPSILON, target_delta=DELTA, sample_rate=RATE, steps=STEPS, accountant=accountant
    )


def dp_accounting_by(make: Callable[[], dp_accounting.PrivacyAccountant]) -> float:
    """Return σ by an accountant of dp_accounting, to 1e-4."""

    def event(sigma: float) -> dp_event.DpEvent:
        step = dp_event.PoissonSampledDpEvent(RATE, dp_event.GaussianDpEvent(sigma))
        return dp_event.SelfComposedDpEvent(step, STEPS)

    return float(dp_accounting.calibrate_dp_mechanism(make, event, EPSILON, DELTA, tol=1e-4))


def main() -> None:
    """Print a line for each accountant."""
    accountants: dict[str, Callable[[], float | None]] = {
        "Opacus, RDP": lambda: opacus("rdp"),
        "Opacus, PRV": lambda: opacus("prv"),
        "Opacus, pyaccount": lambda: opacus("pyaccount"),
        "dp_accounting, PLD": lambda: dp_accounting_by(pld.PLDAccountant),
        "dp_accounting, pyaccount": lambda: dp_accounting_by(EventAccountant),
        "pyaccount": lambda: (
            pyaccount.dp_sgd(epsilon=EPSILON, delta=DELTA, sampling_probability=RATE, iterations=STEPS).noise_multiplier
        ),
    }
    for name, ask in accountants.items():
        seconds = []
        for _ in range(3):
            opacus_accountant._epsilon.cache_clear()  # no answer is that of the time before
            start = time.process_time()
            sigma = ask()
            seconds.append(time.process_time() - start)
        print(f"{name:<24} {sigma:.5f} {min(seconds):.2f} s")


if __name__ == "__main__":
    main()

"""Writes opacus.json: states of Opacus's accountants, and the ε that they told.

Run by hand where opacus, numpy, scipy and opt_einsum are installed. The accountants need nothing of torch, but importing
opacus does; where torch is missing, the package's front door is left out and its accountants are imported all the same.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
import warnings
from importlib.metadata import version
from pathlib import Path

DELTA = 1e-5


def open_side_door() -> None:
    """Let `opacus.accountants` be imported without torch: it only names a type of the optimizers."""
    found = importlib.util.find_spec("opacus")
    assert found is not None
    package = types.ModuleType("opacus")
    package.__path__ = list(found.submodule_search_locations or [])
    optimizers = types.ModuleType("opacus.optimizers")
    optimizers.DPOptimizer = object  # type: ignore[attr-defined]
    sys.modules.update({"opacus": package, "opacus.optimizers": optimizers})


def main() -> None:
    warnings.simplefilter("ignore")  # Opacus says itself that the gdp accountant may under-report.
    if importlib.util.find_spec("torch") is None:
        open_side_door()
    from opacus.accountants import create_accountant

    cases = []
    for mechanism, rounds in (
        ("rdp", [(1.1, 0.01, 600), (0.9, 0.02, 200)]),
        ("prv", [(1.1, 0.01, 600), (0.9, 0.02, 200)]),
        ("gdp", [(1.1, 0.01, 800)]),
    ):
        accountant = create_accountant(mechanism)
        for noise, rate, count in rounds:
            for _ in range(count):
                accountant.step(noise_multiplier=noise, sample_rate=rate)
        epsilon = float(accountant.get_epsilon(DELTA))
        cases.append({"state_dict": accountant.state_dict(), "delta": DELTA, "epsilon": epsilon})
    provenance = {
        "source": "Opacus's accountants, stepped once for each round; written by make_opacus.py",
        "version": version("opacus"),
        "how": "state_dict() and get_epsilon(delta). rdp is an upper bound; prv is one too, and exceeds the true value by up to "
        "twice its eps_error of 0.01; gdp is an approximation that can be too small.",
    }
    target = Path(__file__).with_name("opacus.json")
    target.write_text(json.dumps({"provenance": provenance, "cases": cases}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

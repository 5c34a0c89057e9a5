"""Other accountants of today: upper bounds and intervals."""

from __future__ import annotations

from typing import Any

from validating.checks import Check, Range, at_most, document, poisson


def accountants() -> list[Check]:
    """The settings of the benchmarks of composition, by dp_accounting and prv_accountant."""
    import composition

    checks = []
    for setting in (*composition.POISSON, *composition.MIXTURES[:2]):
        sampling = poisson(setting.sampling_probability, setting.rounds)
        asked = document(
            sampling,
            setting.noise_multiplier,
            epsilon="solve",
            delta=composition.DELTA,
            group_size=setting.group_size,
        )
        name = "Poisson sampling" if setting.group_size == 1 else "Poisson sampling, groups"

        def theirs(setting: Any = setting) -> Range:
            return at_most(composition.dp_accounting_bounds(setting).upper)

        def interval(setting: Any = setting) -> Range:
            bounds = composition.prv_accountant_bounds(setting, 0.01)
            return bounds.lower, bounds.upper

        checks.append(Check(name, setting.label, asked, "dp_accounting", theirs))
        if setting.group_size == 1:
            checks.append(Check(name, setting.label, asked, "prv_accountant", interval))
    return checks


def opake() -> list[Check]:
    """The settings of the benchmark beside opake-accounting, but for the one that it samples itself."""
    import opake_peer

    names = {
        "Poisson": "Poisson sampling",
        "four draws": "Several draws for one iteration",
        "truncated": "Truncated Poisson batches",
        "random allocation": "Random allocation",
    }

    def check(row: Any) -> Check:
        (name,) = [words for start, words in names.items() if row.label.startswith(start)]
        return Check(
            name,
            row.label,
            row.document(row.sigma, 1e-4),
            "opake-accounting",
            lambda: at_most(row.theirs(row.sigma)),
        )

    return [check(row) for row in opake_peer.rows() if not row.label.startswith("b-min-sep")]


def fixed_sizes() -> list[Check]:
    """Batches without replacement, of which what dp_accounting tells depends on what its noise is a multiple of."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    def theirs() -> Range:
        event = dp_accounting.SampledWithoutReplacementDpEvent(100, 1, dp_accounting.GaussianDpEvent(1.0))
        accountant = RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(dp_accounting.SelfComposedDpEvent(event, 500))
        return at_most(float(accountant.get_epsilon(1e-5)))

    training = {"dataset_size": 100, "expected_batch_size": 1, "iterations": 500}
    mechanism = {"training": training, "sampler": {"kind": "fixed-size"}}

    def check(sigma: float, words: str, why: str = "") -> Check:
        asked = document(mechanism, sigma, epsilon="solve", delta=1e-5, adjacency="replace-one")
        return Check("Batches of a fixed size", words, asked, "dp_accounting, Rényi", theirs, why)

    return [
        check(
            1.0,
            "1 of 100, n = 500, replace-one, noise 1 · clip norm",
            "its noise multiplier is one of the distance between two sums, which replacement makes twice the clip norm. Its "
            "figure is that of the next row; read as one of this row, as multiples of the clip norm, it is far too low",
        ),
        check(2.0, "1 of 100, n = 500, replace-one, noise 1 · distance of two sums"),
    ]

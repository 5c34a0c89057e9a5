"""The faults that `benchmarks/faults.py` plants: expressions of the code, what replaces them, and documents they concern."""

from __future__ import annotations

from typing import NamedTuple

CORE = "rust/core/src"
PLAN = "pyaccount/plan"


class Fault(NamedTuple):
    """A fault: its name, what it is, its changes as (file, expression, faulty expression), and documents that it concerns."""

    name: str
    what: str
    changes: tuple[tuple[str, str, str], ...]
    documents: tuple[str, ...]


def _document(adjacency: str, body: str, group: int = 1, delta: str = "1e-6") -> str:
    grouped = f", group_size: {group}" if group > 1 else ""
    return f"pyaccount: 1\nname: planted\nprivacy: {{adjacency: {adjacency}, epsilon: solve, delta: {delta}{grouped}}}\n{body}"


def _poisson(q: float, rounds: int, sigma: float, draws: int = 1) -> str:
    several = f", draws_per_iteration: {draws}" if draws > 1 else ""
    return (
        f"training: {{sampling_probability: {q}, iterations: {rounds}}}\nsampler: {{kind: poisson{several}}}\n"
        f"noise: {{multiplier: {sigma}}}\n"
    )


def _unsampled(rounds: int, sigma: float, more: str = "") -> str:
    return f"training: {{iterations: {rounds}}}\nsampler: {{kind: none}}\nnoise: {{multiplier: {sigma}}}\n{more}"


_MATRIX = (
    "training: {iterations: 64}\nsampler: {kind: none, min_separation: 16}\nnoise: {multiplier: 6}\n"
    "matrix: {kind: toeplitz, coefficients: [1.0, 0.5, 0.375, 0.3125], normalize: false}\n"
)
_FIXED = (
    "training: {dataset_size: 1000, expected_batch_size: 20, iterations: 100}\nsampler: {kind: fixed-size}\n"
    "noise: {multiplier: 1.3}\n"
)
_STATED = (
    "phases:\n  - {mechanism: {kind: stated, epsilon: 0.5, delta: 1e-8}, count: 20}\n"
    "  - {mechanism: {kind: laplace, scale: 5}}\n"
)
_PHASES = (
    "phases:\n"
    "  - {training: {sampling_probability: 0.02, iterations: 50}, sampler: {kind: poisson}, noise: {multiplier: 1.2}}\n"
    "  - {training: {sampling_probability: 0.02, iterations: 50}, sampler: {kind: poisson}, noise: {multiplier: 1.2}}\n"
    "  - {mechanism: {kind: gaussian, sigma: 10}}\n"
)
_SAMPLED = (
    "phases:\n  - mechanism: {kind: laplace, scale: 1}\n    count: 30\n"
    "    sampler: {kind: poisson, sampling_probability: 0.05}\n"
)
_TUNED = (
    "phases:\n  - select: {kind: geometric, stopping_probability: 0.2}\n"
    "    phases: [{mechanism: {kind: gaussian, sigma: 5}}, {mechanism: {kind: laplace, scale: 20}}]\n"
)
_STRATA = (
    "training: {sampling_probability: {strata: {seldom: 0.005, often: 0.02}}, iterations: 100}\nsampler: {kind: poisson}\n"
    "noise: {multiplier: 1}\n"
)
_SEPARATED = (
    "training: {sampling_probability: 0.1, iterations: 24}\nsampler: {kind: b-min-sep, min_separation: 3, start: START}\n"
    "matrix: {kind: banded-square-root, bands: 3}\nnoise: {multiplier: 1}\naccounting: {method: monte-carlo, seed: 1}\n"
)

DOCUMENTS = {
    "poisson": _document("add-remove", _poisson(0.01, 500, 0.8)),
    "few-rounds": _document("add-remove", _poisson(0.2, 20, 2.0)),
    "one-round": _document("add-remove", _poisson(0.2, 1, 1.3)),
    "small-delta": _document("add-remove", _poisson(0.05, 50, 1.5), delta="1e-30"),
    "group": _document("add-remove", _poisson(0.01, 100, 2.0), group=4),
    "micro-batches": _document("add-remove", _poisson(0.01, 100, 1.5, draws=4)),
    "replaced": _document("replace-one", _poisson(0.02, 100, 1.3)),
    "full-batch": _document("zero-out", _unsampled(10, 1.5)),
    "little-noise": _document("zero-out", _unsampled(5, 0.4)),
    "full-batch-replaced": _document("replace-one", _unsampled(10, 8)),
    "laplace-replaced": _document(
        "replace-one", _unsampled(10, 8).replace("multiplier: 8", "kind: laplace, multiplier: 8")
    ),
    "matrix": _document("zero-out", _MATRIX),
    "fixed-size": _document("replace-one", _FIXED),
    "fixed-size, zero-out": _document("zero-out", _FIXED),
    "fixed-size, little noise": _document(
        "zero-out", _FIXED.replace("1.3", "0.2").replace("iterations: 100", "iterations: 1"), delta="1e-3"
    ),
    "stated": _document("zero-out", _STATED),
    "phases": _document("add-remove", _PHASES),
    "on-a-sample": _document("add-remove", _SAMPLED),
    "near the largest loss": _document("add-remove", _SAMPLED.replace("count: 30", "count: 3"), delta="1e-12"),
    "tuned": _document("add-remove", _TUNED, delta="1e-5"),
    "strata": _document("add-remove", _STRATA),
    "b-min-sep": _document("zero-out", _SEPARATED.replace("START", "warm"), delta="1e-3"),
    "b-min-sep, cold": _document("zero-out", _SEPARATED.replace("START", "cold"), delta="1e-3"),
}

_INFINITE = (
    (f"{CORE}/pld/compose.rs", "value * slack.exp() * (1.0 + 16.0 * UNIT_ROUNDOFF)", "0.0 * value"),
    (f"{CORE}/pld/compose.rs", "value * (-slack).exp() * (1.0 - 16.0 * UNIT_ROUNDOFF)", "0.0 * value"),
    (f"{CORE}/pld/doubling.rs", "infinite * (1.0 + summed) + UNDERFLOW", "0.0 * infinite"),
    (f"{CORE}/pld/doubling.rs", "infinite * (1.0 - summed)", "0.0 * infinite"),
)
_KINKS = (
    (f"{CORE}/pld/masses.rs", "masses.index.push(nodes[j].index)", "masses.index.push(nodes[j].index - 1)"),
    (
        f"{CORE}/pld/masses.rs",
        "masses.epsilon.push(nodes[j].epsilon)",
        "masses.epsilon.push(nodes[j].epsilon - mesh.spacing)",
    ),
)
_SPLIT = """low.max(match self.query {
                Query::Delta(epsilon) => split.delta(epsilon),
                Query::Epsilon(delta) => split.epsilon(delta, high),
            })"""
#: The lower bounds are not there, so that the copy does not notice that its bounds cross. The intervals never become narrow, so
#: the search ends after its second lattice, and doubling is not tried.
_NO_LOWER = (
    (
        f"{CORE}/pld/readoff.rs",
        "self.finite_at_least(epsilon.max(start)).max(0.0) + self.at_infinity",
        "0.0 * self.at_infinity",
    ),
    (f"{CORE}/pld/readoff.rs", "self.side == Side::Lower && self.at_infinity > delta", "false"),
    (f"{CORE}/pld/answer.rs", "found.lower.max(self.lower)", "0.0"),
    (f"{CORE}/pld/search.rs", _SPLIT, "0.0"),
    (f"{CORE}/pld/search.rs", "split.as_ref().map_or(0.0, |split| split.delta(epsilon))", "0.0 * epsilon"),
    (f"{CORE}/pld/curve.rs", "least.max(point.0)", "0.0 * point.0"),
    (f"{CORE}/pld/without_lattice.rs", "single(below.as_ref(), self.query)?.lower", "0.0"),
    (f"{CORE}/pld/search.rs", "answer.within_tolerance || below || idle >= patience || spent", "attempt > 0"),
    (
        f"{CORE}/pld/search.rs",
        "answer.within_tolerance || narrow || !self.worth_doubling(&answer)",
        "answer.upper > 0.0",
    ),
)
_READ = "epsilon - self.origin.loss + if self.side == Side::Upper { -error } else { error }"
_POISSON = "PoissonProfile(group, rate, noise, two_sided, reverse=reverse and not two_sided)"
_RENEWAL = 'self.node.separation() or 1, self.node.sampling_probability(), self.start() == "warm"'
_NORM = "sums.norm(sums.spaced_sum(column, n, b, most))"
_STEPS = '{"add-remove": 2.0, "replace-one": 2.0, "zero-out": 1.0}[privacy.adjacency]'
_JOINT = "Reflected::both(Half::Joint(joint(2.0)), Half::Joint(joint(2.0)))"
_LOWERED = (
    "{ let mut low = hull(mesh, 1.0, &values, last); let h = low.spacing; low.index.iter_mut().for_each(|i| *i -= 1); "
    "low.epsilon.iter_mut().for_each(|e| *e -= h); low }"
)

FAULTS = (
    # Rounding.
    Fault(
        "losses-down",
        "the losses of each round are rounded down by one lattice cell",
        ((f"{CORE}/pld/compose.rs", "position(index, length)", "position(index - 1, length)"),),
        ("poisson", "few-rounds", "small-delta"),
    ),
    Fault(
        "upper-down",
        "the same, in the law from above only",
        ((f"{CORE}/pld/masses.rs", "hull(mesh, 1.0, &values, last)", _LOWERED),),
        ("poisson", "few-rounds"),
    ),
    Fault(
        "alone-down",
        "the same, without lower bounds",
        (
            (f"{CORE}/pld/masses.rs", "hull(mesh, 1.0, &values, last)", _LOWERED),
            *_NO_LOWER,
        ),
        ("poisson", "few-rounds", "small-delta"),
    ),
    Fault(
        "both-down", "the kinks of both laws of a round are one lattice cell too low", _KINKS, ("poisson", "few-rounds")
    ),
    Fault(
        "window-down",
        "the composed law is moved down by one cell",
        ((f"{CORE}/pld/compose.rs", "position(first, self.length)", "position(first + 1, self.length)"),),
        ("poisson", "few-rounds", "phases"),
    ),
    # Tails.
    Fault("infinite", "infinite losses are dropped", _INFINITE, ("stated", "poisson")),
    Fault(
        "tail",
        "rounds end at a δ that is not negligible, and what is beyond is dropped",
        (
            *_INFINITE,
            (
                f"{CORE}/pld/question.rs",
                "(delta * self.tolerance * 1e-3 / self.total).max(1e-299)",
                "(delta * 30.0 / self.total).max(1e-299)",
            ),
        ),
        ("poisson", "few-rounds"),
    ),
    Fault(
        "window",
        "the mass above the window of the transform is dropped",
        (
            (
                f"{CORE}/pld/compose.rs",
                "total * own.exp() * tail(0.0, &origin, 1.0, start + width, top)",
                "0.0 * top",
            ),
        ),
        ("poisson", "few-rounds"),
    ),
    Fault(
        "tail-alone",
        "rounds end at a δ that is not negligible, and what is beyond is dropped, without lower bounds",
        (
            *_INFINITE,
            *_NO_LOWER,
            (
                f"{CORE}/pld/question.rs",
                "(delta * self.tolerance * 1e-3 / self.total).max(1e-299)",
                "(delta * 30.0 / self.total).max(1e-299)",
            ),
        ),
        ("poisson", "few-rounds"),
    ),
    # Directions.
    Fault(
        "rounds-of-add",
        "the rounds of the direction add are taken for both",
        (
            (
                f"{PLAN}/samplers/poisson.py",
                "tight(remove, add, rounds(case.node))",
                "tight(add, add, rounds(case.node))",
            ),
        ),
        ("one-round", "few-rounds", "poisson", "group"),
    ),
    Fault(
        "add-only",
        "only the direction add counts",
        tuple(
            (
                "pyaccount/execute/engine.py",
                f"max(answer.{end} for answer in self.directions.values())",
                f'self.directions["add"].{end}',
            )
            for end in ("upper", "lower")
        ),
        ("one-round", "few-rounds", "group", "on-a-sample"),
    ),
    Fault(
        "largest-of-the-other",
        "the largest loss of a run on a sample is that of the other direction",
        (
            (
                f"{CORE}/pair/subsampled.rs",
                "if self.reverse { -1.0 } else { 1.0 }",
                "if self.reverse { 1.0 } else { -1.0 }",
            ),
        ),
        ("near the largest loss", "on-a-sample"),
    ),
    Fault(
        "increasing",
        "the likelihood ratio of a record that is set to zero is taken to increase everywhere",
        ((f"{CORE}/pair/mixture.rs", "1.5 * c", "f64::NEG_INFINITY"),),
        ("fixed-size, zero-out", "fixed-size, little noise"),
    ),
    # Sampling.
    Fault(
        "strata",
        "the smallest probability of all strata counts in place of the largest",
        (
            (
                "pyaccount/document/own_probabilities.py",
                "max((value for value in stated if isinstance(value, float)), default=None)",
                "min((value for value in stated if isinstance(value, float)), default=None)",
            ),
        ),
        ("strata",),
    ),
    Fault(
        "negative-mean",
        "the mean number of runs is negative",
        (
            (
                f"{CORE}/pair/selection/runs.rs",
                "(1.0 - stopping) / stopping * share",
                "-(1.0 - stopping) / stopping * share",
            ),
        ),
        ("tuned",),
    ),
    Fault(
        "smaller-mean",
        "the mean number of runs is 1 % too small",
        (
            (
                f"{CORE}/pair/selection/runs.rs",
                "(1.0 - stopping) / stopping * share",
                "0.99 * (1.0 - stopping) / stopping * share",
            ),
        ),
        ("tuned",),
    ),
    Fault(
        "group-of-one",
        "q is counted once: one record of the group is drawn",
        (
            (
                f"{PLAN}/samplers/poisson.py",
                "number(privacy.group_size) * case.node.draws_per_iteration()",
                "case.node.draws_per_iteration()",
            ),
        ),
        ("group",),
    ),
    Fault(
        "one-draw",
        "q is counted once: a round has one draw",
        (
            (
                f"{PLAN}/samplers/poisson.py",
                "number(privacy.group_size) * case.node.draws_per_iteration()",
                "number(privacy.group_size)",
            ),
        ),
        ("micro-batches",),
    ),
    Fault(
        "squared",
        "q² in place of q",
        (
            (
                f"{PLAN}/samplers/poisson.py",
                _POISSON,
                "PoissonProfile(group, rate**2, noise, two_sided, reverse=reverse and not two_sided)",
            ),
            (
                f"{PLAN}/units.py",
                'SubsampledProfile(one_round(rounds, below=below), rate, reverse=direction == "add")',
                'SubsampledProfile(one_round(rounds, below=below), rate**2, reverse=direction == "add")',
            ),
        ),
        ("poisson", "on-a-sample"),
    ),
    Fault(
        "odds",
        "q/(1 + q) in place of q: weights that are not normalised",
        ((f"{CORE}/laws/mod.rs", "probability / (1.0 - probability)", "probability"),),
        ("poisson", "few-rounds", "group"),
    ),
    # Correlated noise with sampling.
    *(
        Fault(
            name,
            f"b-min-sep sampling: {what}",
            ((f"{PLAN}/samplers/renewal.py", _RENEWAL, _RENEWAL.replace(right, faulty)),),
            documents,
        )
        for name, what, right, faulty, documents in (
            (
                "rate",
                "the participation rate in place of the probability of a free record",
                "self.node.sampling_probability()",
                "self.node.participation_rate()",
                ("b-min-sep", "b-min-sep, cold"),
            ),
            (
                "one-apart",
                "a record sits out one round too many",
                "self.node.separation() or 1",
                "(self.node.separation() or 1) + 1",
                ("b-min-sep", "b-min-sep, cold"),
            ),
            ("start", "a cold start is taken for a warm one", ' == "warm"', ' != ""', ("b-min-sep, cold",)),
        )
    ),
    Fault(
        "separated-noise",
        "b-min-sep sampling: coefficients are divided by 1.01 σ",
        (
            (
                f"{PLAN}/samplers/renewal.py",
                "scaled_coefficients(self, sigma)",
                "scaled_coefficients(self, 1.01 * sigma)",
            ),
        ),
        ("b-min-sep",),
    ),
    # Norms and noise.
    Fault(
        "last-column",
        "a matrix's column norm is that of its last column",
        ((f"{PLAN}/matrices/sensitivity.py", _NORM, "coefficients[0] * math.sqrt(most)"),),
        ("matrix",),
    ),
    Fault(
        "largest-entry",
        "another norm: the largest entry of the columns",
        ((f"{PLAN}/matrices/sensitivity.py", _NORM, "float(column.max()) * math.sqrt(most)"),),
        ("matrix",),
    ),
    Fault(
        "one-participation",
        "a record takes part in one round",
        ((f"{PLAN}/matrices/sensitivity.py", _NORM, "sums.norm(sums.spaced_sum(column, n, b, 1))"),),
        ("matrix",),
    ),
    Fault(
        "twice",
        "the sensitivity is divided by the column norm a second time",
        tuple(
            (
                f"{PLAN}/samplers/deterministic.py",
                f"group * {end} * (1.0 {sign} built.slack)",
                f"group * {end} * (1.0 {sign} built.slack) / built.column_norm",
            )
            for end, sign in (("above", "+"), ("below", "-"))
        ),
        ("matrix",),
    ),
    Fault(
        "variance",
        "σ² in place of σ",
        (
            (
                f"{CORE}/pair/mixture.rs",
                "unit * f64::from(j) / noise_multiplier",
                "unit * f64::from(j) / (noise_multiplier * noise_multiplier)",
            ),
        ),
        ("one-round", "few-rounds", "replaced"),
    ),
    Fault(
        "deviation",
        "σ in place of σ² where Gaussian mechanisms are added up",
        (
            (
                "pyaccount/profiles/mechanisms.py",
                "(one.sensitivity / one.noise_multiplier) ** 2",
                "(one.sensitivity / one.noise_multiplier)",
            ),
        ),
        ("little-noise", "full-batch"),
    ),
    # Counts, sensitivities and what is read off.
    Fault(
        "one-less",
        "n − 1 rounds in place of n",
        (
            (
                f"{PLAN}/samplers/poisson.py",
                "tight(remove, add, rounds(case.node))",
                "tight(remove, add, rounds(case.node) - 1)",
            ),
        ),
        ("poisson", "few-rounds", "replaced"),
    ),
    Fault(
        "equal-phases",
        "equal rounds of two phases are counted once",
        (("pyaccount/profiles/base.py", "counts.get(item.profile, 0) + item.count", "item.count"),),
        ("phases",),
    ),
    Fault(
        "replaced-by-one",
        "a record that is replaced moves the sum by 1",
        (
            (f"{PLAN}/common.py", '2 if asked.privacy.adjacency == "replace-one" else 1', "1"),
            (
                f"{PLAN}/samplers/poisson.py",
                _POISSON,
                "PoissonProfile(group, rate, noise, two_sided=False, reverse=reverse)",
            ),
        ),
        ("full-batch-replaced", "laplace-replaced", "replaced"),
    ),
    Fault(
        "displaced-by-one",
        "a record of a batch of fixed size that is replaced moves the sum by 1",
        (
            (
                f"{CORE}/pair/substitution.rs",
                _JOINT,
                "Reflected::both(Half::Joint(joint(1.0)), Half::Joint(joint(1.0)))",
            ),
            (f"{PLAN}/samplers/fixed_draws.py", _STEPS, "1.0"),
        ),
        ("fixed-size",),
    ),
    Fault(
        "displaced-above",
        "the same, in the bound from above only",
        (
            (
                f"{CORE}/pair/substitution.rs",
                _JOINT,
                "Reflected::both(Half::Joint(joint(1.0)), Half::Joint(joint(1.0)))",
            ),
        ),
        ("fixed-size",),
    ),
    Fault(
        "next-cell",
        "δ is read one cell too far right",
        ((f"{CORE}/pld/readoff.rs", _READ, "epsilon + self.spacing - self.origin.loss"),),
        ("poisson", "few-rounds", "phases"),
    ),
    Fault(
        "one-percent-right",
        "δ is read at 1.01 ε",
        ((f"{CORE}/pld/readoff.rs", _READ, "1.01 * epsilon - self.origin.loss"),),
        ("poisson", "few-rounds"),
    ),
    Fault(
        "one-percent-delta",
        "a δ that is 1 % too large is accepted",
        ((f"{CORE}/pld/readoff.rs", "self.delta(epsilon) <= delta", "0.99 * self.delta(epsilon) <= delta"),),
        ("poisson", "few-rounds", "phases"),
    ),
    Fault(
        "slack",
        "a δ that is 0.05 % too large is accepted, which is less than a proof may be off",
        ((f"{CORE}/pld/readoff.rs", "self.delta(epsilon) <= delta", "0.9995 * self.delta(epsilon) <= delta"),),
        ("poisson", "few-rounds"),
    ),
)

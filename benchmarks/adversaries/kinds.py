"""Every kind that documents may name, with what builds it. The names are those of pyaccount's registries."""

from __future__ import annotations

from typing import get_args

from adversaries import mechanisms, selections, separated, stated, training, truncated, wrappers
from adversaries.component import Builder
from pyaccount.document.kinds import Kinds, word_of
from pyaccount.document.matrices import MATRICES
from pyaccount.document.mechanisms import MECHANISMS
from pyaccount.document.models import PartPhases, SampledPhases, SelectedPhases
from pyaccount.document.noise import AnyNoise
from pyaccount.document.samplers import SAMPLERS
from pyaccount.document.selection import RUNS
from pyaccount.document.words import Adjacency

ADJACENCIES: tuple[str, ...] = get_args(Adjacency)

SIMPLE: dict[str, Builder] = {
    "mechanism stated": stated.stated,
    "mechanism gaussian": mechanisms.normal,
    "mechanism mixture-of-gaussians": mechanisms.mixture,
    "mechanism laplace": mechanisms.lap,
    "mechanism discrete-gaussian": mechanisms.integers,
    "mechanism discrete-laplace": mechanisms.geometric,
    "mechanism randomized-response": mechanisms.response,
    "mechanism exponential": selections.exponential,
    "mechanism permute-and-flip": selections.permute_and_flip,
    "mechanism report-noisy-max": selections.report_noisy_max,
    **{f"sampler {kind}": build for kind, build in training.BUILDERS.items()},
    "noise gaussian": training.ordered,
    "noise laplace": training.ordered_laplace,
    **{
        f"matrix {kind}": separated.with_matrix(kind)
        for kind in (
            "identity",
            "banded-square-root",
            "toeplitz",
            "banded-inverse",
            "blt",
            "tree",
            "optimal-toeplitz",
            "dense",
        )
    },
}
#: Runs whose loss is sampled: they take long, and cannot stand in other phases.
SAMPLED: dict[str, Builder] = {
    "sampler b-min-sep": separated.sampled_run(separated.b_min_sep),
    "sampler user-b-min-sep": separated.sampled_run(separated.user_b_min_sep),
    "sampler balls-in-bins, by round": separated.sampled_run(separated.balls_in_bins),
    "sampler cyclic-poisson, random": separated.sampled_run(separated.cyclic),
    "sampler b-min-sep, truncated": truncated.b_min_sep,
    "sampler balls-in-bins, truncated": truncated.balls_in_bins,
    **{
        f"sampler {kind} with a matrix": separated.sampled_run(process, matrix=True)
        for kind, process in (
            ("b-min-sep", separated.b_min_sep),
            ("user-b-min-sep", separated.user_b_min_sep),
            ("balls-in-bins", separated.balls_in_bins),
            ("cyclic-poisson", separated.cyclic_fixed),
            ("cyclic-poisson, random,", separated.cyclic),
        )
    },
}
_INNER = {name: build for name, build in SIMPLE.items() if not name.startswith("matrix ")}
WRAPPERS: dict[str, Builder] = {
    "phases": wrappers.on_sample(_INNER),
    "parallel": wrappers.parallel(_INNER),
    **{f"select {name}": wrappers.select(_INNER, name) for name in wrappers.LAWS},
}
BUILDERS: dict[str, Builder] = SIMPLE | SAMPLED | WRAPPERS


def expected() -> set[str]:
    """Return the names of all kinds, from pyaccount's registries."""
    found = {f"mechanism {word_of(kind)}" for kind in MECHANISMS} | {f"sampler {word_of(kind)}" for kind in SAMPLERS}
    found |= {f"matrix {word_of(kind)}" for kind in MATRICES} | {f"select {word_of(kind)}" for kind in RUNS}
    noises = next(one for one in get_args(AnyNoise) if isinstance(one, Kinds))
    found |= {f"noise {word}" for word in noises.by_kind}
    shapes = {key for shape in (SampledPhases, SelectedPhases, PartPhases) for key in shape.model_fields}
    return found | (shapes & {"phases"}) | {"parallel"}

"""The common questions in one call: DP-SGD, and DP-SGD with correlated noise (DP-BandMF).

The arguments become a mechanism document, which is certified: `certificate.document()` returns it. What is left out is computed:
the noise, ε, δ or the number of iterations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyaccount.certificate import Certificate
from pyaccount.errors import DocumentError, DomainError, Path
from pyaccount.running.public import certify

if TYPE_CHECKING:
    Adjacency = Literal["add-remove", "zero-out", "replace-one"]

#: Where the value of each argument stands in the document.
_PLACES: dict[str, tuple[str, ...]] = {
    "name": ("name",),
    "adjacency": ("privacy", "adjacency"),
    "group_size": ("privacy", "group_size"),
    "epsilon": ("privacy", "epsilon"),
    "delta": ("privacy", "delta"),
    "dataset_size": ("training", "dataset_size"),
    "expected_batch_size": ("training", "expected_batch_size"),
    "sampling_probability": ("training", "sampling_probability"),
    "participation_rate": ("training", "participation_rate"),
    "iterations": ("training", "iterations"),
    "epochs": ("training", "epochs"),
    "noise_multiplier": ("noise", "multiplier"),
    "min_separation": ("sampler", "min_separation"),
    "bands": ("matrix", "bands"),
    "seed": ("accounting", "seed"),
}
#: What may be left out, so that it is computed.
_BLANKS = ("noise_multiplier", "epsilon", "delta", "iterations")


def dp_sgd(  # noqa: PLR0913 - the parameters of DP-SGD
    *,
    noise_multiplier: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    sampling_probability: float | None = None,
    dataset_size: int | None = None,
    expected_batch_size: float | None = None,
    iterations: int | None = None,
    epochs: float | None = None,
    adjacency: Adjacency = "add-remove",
    group_size: int = 1,
    name: str = "DP-SGD",
    **unknown: object,
) -> Certificate:
    """Certify DP-SGD: every record is drawn independently in each iteration (Poisson sampling), each gradient is clipped to norm
    C, and Gaussian noise with standard deviation `noise_multiplier`·C is added to their sum.

    One of `noise_multiplier`, `epsilon`, `delta` and `iterations` is left out, and computed: the least noise, ε or δ, or the most
    iterations. If all four are given, the certificate says whether the claim holds.

    ```python
    import pyaccount

    pyaccount.dp_sgd(epsilon=8, delta=1e-5, sampling_probability=0.01, iterations=2000).noise_multiplier
    pyaccount.dp_sgd(noise_multiplier=1, delta=1e-5, sampling_probability=0.01, iterations=2000).epsilon
    ```

    Args:
        noise_multiplier: σ, the standard deviation of the noise in clip norms.
        epsilon: ε of the guarantee, in nats.
        delta: δ of the guarantee, a probability.
        sampling_probability: The probability that a record is in the batch of an iteration.
        dataset_size: The number of records; with `expected_batch_size` it gives the probability.
        expected_batch_size: The expected number of records in a batch.
        iterations: The number of times that noise is added.
        epochs: Iterations as a number of passes over the data, in their place.
        adjacency: Which data sets are neighbours: one record is added or removed, zeroed (`zero-out`), or replaced.
        group_size: The number of records that are protected together.
        name: The name in the certificate.
        unknown: Nothing: names of other libraries are answered by the name of the argument.

    Returns the `Certificate`: upper bounds, proven and rounded outward (`docs/composition.md`). Raises `DocumentError`, with the
    arguments that are wrong, and `DomainError` for arguments that are unknown or missing.
    """
    return _certified(locals(), {"sampler": {"kind": "poisson"}})


def dp_bandmf(  # noqa: PLR0913 - the parameters of DP-BandMF
    *,
    dataset_size: int,
    expected_batch_size: float,
    min_separation: int,
    bands: int | None = None,
    noise_multiplier: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    iterations: int | None = None,
    epochs: float | None = None,
    adjacency: Adjacency = "add-remove",
    seed: int = 1,
    name: str = "DP-BandMF",
    **unknown: object,
) -> Certificate:
    """Certify DP-SGD with correlated noise C⁻¹Z: a banded square root C, and b-min-sep sampling, in which a record that was drawn
    rests for `min_separation` − 1 iterations (DP-BandMF).

    `noise_multiplier`, `epsilon` or `delta` is left out, and computed. The certificate says how it is proven; if samples of the
    privacy loss were needed, it states the probability with which it may be wrong.

    ```python
    import pyaccount

    certificate = pyaccount.dp_bandmf(
        dataset_size=50_000, expected_batch_size=500, iterations=200, min_separation=8, epsilon=8, delta=1e-5
    )
    print(certificate.noise_multiplier)
    ```

    Args:
        dataset_size: The number of records.
        expected_batch_size: The expected number of records in a batch.
        min_separation: b, the least number of iterations from one participation of a record to the next.
        bands: The number of non-zero diagonals of C, at most b; b if it is left out.
        noise_multiplier: σ, the standard deviation of the rows of Z in clip norms.
        epsilon: ε of the guarantee, in nats.
        delta: δ of the guarantee, a probability.
        iterations: The number of times that noise is added.
        epochs: Iterations as a number of passes over the data, in their place.
        adjacency: Which data sets are neighbours, as for `dp_sgd`.
        seed: The seed of the samples; equal seeds give equal certificates.
        name: The name in the certificate.
        unknown: Nothing: names of other libraries are answered by the name of the argument.

    Returns the `Certificate`. Raises as `dp_sgd` does.
    """
    bands = min_separation if bands is None else bands
    return _certified(locals(), {"sampler": {"kind": "b-min-sep"}, "matrix": {"kind": "banded-square-root"}})


def _certified(arguments: dict[str, Any], kinds: dict[str, dict[str, str]]) -> Certificate:
    """Certify the document of a function's arguments; those that are None are left out, and one of `_BLANKS` is the blank."""
    if unknown := arguments.pop("unknown"):
        raise DomainError("\n".join(_answer(key, arguments) for key in unknown))
    given = {key: value for key, value in arguments.items() if value is not None}
    missing = [key for key in _BLANKS if key not in given and not (key == "iterations" and "epochs" in given)]
    if len(missing) > 1:
        raise DomainError(
            f"{' and '.join(missing)} are missing: leave out at most one of {', '.join(_BLANKS)}, which is computed"
        )
    document: dict[str, Any] = {"pyaccount": 1, **{key: dict(section) for key, section in kinds.items()}}
    for key, value in [*given.items(), *((key, "solve") for key in missing)]:
        *sections, field = _PLACES[key]
        place = document
        for section in sections:
            place = place.setdefault(section, {})
        place[field] = value
    try:
        return certify(document)
    except DocumentError as error:
        names: dict[Path, str] = {place: key for key, place in _PLACES.items()}
        raise DocumentError(
            replace(problem, path=(names[problem.path],) if problem.path in names else problem.path)
            for problem in error.problems
        ) from None


def _answer(key: str, arguments: dict[str, Any]) -> str:
    """Return what to do about an argument that there is not."""
    from pyaccount.reading.spelling import advice_on, alias_of, nearest  # only wrong calls need it

    names = {place: name for name, place in _PLACES.items() if name in arguments}
    field = tuple(str(part) for part in alias_of(key) or ())
    meant = names.get(field) or nearest(key, arguments)
    if meant is not None:
        return f"{key} is no argument of this function; did you mean {meant}?"
    advice = advice_on(key)
    if advice is not None:
        return f"{key} is no argument of this function: {advice}"
    return f"{key} is no argument of this function; it takes {', '.join(arguments)}; documents can say more"

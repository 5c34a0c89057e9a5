"""Flower: converts the state of its accountant, a strategy with differential privacy, or its local mod to a document.

In all three a record of the document is a *client* with all of its data. Objects are read as Flower 1.42 makes them.

**What a round of a strategy is.** `DifferentialPrivacy…FixedClipping` wraps FedAvg, which draws m of the N connected clients
without replacement (`random.sample`), m = `num_sampled_clients`. The change of each is clipped to C = `clipping_norm`, and
N(0, (σC/m)²) is added to the *mean*, σ = `noise_multiplier`. If this is the plain mean over exactly m clients, it is their sum
with noise σC, divided by a constant: a round of a document with the sampler `fixed-size` and `noise.multiplier` σ. Three things
may break this, and the adapter asks for or refuses them:

* FedAvg weighs clients by `num-examples`, which they report. Then one client moves the weighted mean by up to C times its share
  of the weights, and the noise is that for the share 1/m.
* If fewer clients answer, the mean is over fewer, and the noise is still that for m.
* Other strategies do more than the mean (FedAdam, FedMedian …), and the noise is added to what they return.

With an accountant of its own, Flower checks the first two in every round, and refuses the third.

**Which clients are neighbours.** Flower's accountant has a strategy's rounds as `no-amplification` under `add-or-remove-one`: a
Gaussian mechanism that a client moves by C. But the number of drawn clients is fixed. If a client is removed, another one takes
its place in the sample, so the sum moves by up to 2C. The largest loss of a round is then larger than what is accounted for: for
σ = 1, m = 50 of N = 100 clients, one round and δ = 1e-5 two concrete data sets have ε = 8.98, and a Gaussian mechanism has 4.38.
If the number of clients is public and a client is replaced by one that changes nothing (zero-out), a draw moves by at most C, and
by joint convexity over the draws the Gaussian mechanism bounds each round. So such a state is read as zero-out, with the sampler
`none`: the ε is that of the same Gaussian rounds. `replace-one` holds as well, with twice the sensitivity.

**Adaptive clipping** (`DifferentialPrivacy…AdaptiveClipping`) is refused. These strategies clip to the norm of the round, then
change it by the noisy share of clipped clients, and scale the noise by the *new* norm. So the ratio of noise and clip norm is σ′
times a factor that depends on what was released, and that is smaller than one if many clients were clipped. No multiplier that
is fixed beforehand describes this.

**The local mod** (`LocalDpMod`) adds Gaussian noise with s = sensitivity·√(2 ln(1.25/δ))/ε to each answer. That formula is a
theorem only for ε ≤ 1 (Dwork & Roth 2014, Theorem A.1), and only if `sensitivity` is that of the answer. A document has s itself
and what the mod's clipping implies: two answers of a client differ by at most 2·`clipping_norm` (replace-one), an answer and that
of a client that changes nothing by `clipping_norm` (zero-out).

What no document shows: Flower draws clients and noise with Python's and numpy's generators, which are not cryptographic, and adds
noise in the precision of the model. Metrics of clients are averaged without noise. Flower's clipping does not stop a change that
has a NaN or an infinite entry: the mean becomes NaN whatever the noise is, which shows that this client was drawn.
So a guarantee needs clients that send finite changes, or a check of their answers before the strategy gets them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pyaccount.adapters.reading import BodyMapping, document, no_equivalent, real, whole_in, wrong_type_error
from pyaccount.document.ranges import COUNT, DATASET_SIZE, EPSILON, ITERATIONS, NOISE_MULTIPLIER, SENSITIVITY
from pyaccount.document.ranges import DELTA as PROBABILITY_OF_FAILURE
from pyaccount.errors import Path, quoted

#: The version of a state's layout, and the backends that write it: Flower's own, and `pyaccount.integrations.flower_accountant`.
LAYOUT, BACKENDS = 1, ("rdp", "pyaccount")
#: How Flower's accountant samples, with the relations that it allows, and the adjacencies under which a document says the same.
SAMPLED = {
    "poisson": ("add-or-remove-one", ("add-remove", "zero-out")),
    "without-replacement": ("replace-one", ("replace-one",)),
    "no-amplification": ("add-or-remove-one", ("zero-out", "replace-one")),
}
FIXED, ADAPTIVE = "FixedClipping", "AdaptiveClipping"


def from_accountant(
    source: object,
    *,
    delta: float | str | None = None,
    epsilon: float | str = "solve",
    adjacency: str | None = None,
    name: str = "flower",
) -> dict[str, Any]:
    """Return the document of an accountant of Flower's strategies, or of its `state_dict()`, with a phase for each entry.

    Args:
        source: The accountant or its state.
        delta: δ of the document; by default the accountant's `target_delta`.
        epsilon: ε of the document; by default it is solved for. `max_epsilon` of the accountant is not taken over.
        adjacency: Which sets of clients are neighbours. By default that of the accountant; zero-out if its sampling is
            `no-amplification`, because Flower's relation is not true of batches of a fixed size (see the head of this module).
        name: The name of the document.

    Raises:
        DocumentError: If `source` is no such state (with the place in it), has no release, or for an adjacency that its sampling
            does not have.
    """
    state = source if isinstance(source, Mapping) else _state(source)
    if state.get("schema_version") != LAYOUT or state.get("backend") not in BACKENDS:
        no_equivalent(
            ("schema_version",),
            "this is no state of Flower's RdpAccountant: its layout or backend is not known, so neither is its meaning",
            value=f"{state.get('schema_version')!r}, backend {state.get('backend')!r}",
            allowed=f"{LAYOUT}, backend {' or '.join(map(repr, BACKENDS))}",
        )
    config = _mapping(state, "config", ())
    sampling, relation = _text(config, "sampling_method"), _text(config, "neighboring_relation")
    if sampling not in SAMPLED or SAMPLED[sampling][0] != relation:
        no_equivalent(
            ("config", "sampling_method"),
            f"Flower has no accounting for {sampling!r} under {relation!r}",
            value=sampling,
            allowed=", ".join(SAMPLED),
        )
    adjacencies = SAMPLED[sampling][1]
    adjacency = adjacencies[0] if adjacency is None else adjacency
    if adjacency not in adjacencies:
        no_equivalent(
            ("adjacency",),
            _why_not(sampling),
            value=adjacency,
            allowed=" or ".join(adjacencies),
        )
    population = whole_in(config.get("population_size"), DATASET_SIZE, ("config", "population_size"))
    bodies = [
        _entry(entry, sampling, population, ("compositions", index))
        for index, entry in enumerate(_list(state, "compositions"))
    ]
    if not bodies:
        no_equivalent(("compositions",), "nothing was released yet: a document needs at least one round", value=[])
    if delta is None:
        delta = real(config.get("target_delta"), PROBABILITY_OF_FAILURE, ("config", "target_delta"))
    return document(bodies, name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=1)


def from_strategy(  # noqa: PLR0913 - what a strategy does not have
    strategy: object,
    *,
    rounds: int,
    clients: int,
    delta: float | str,
    epsilon: float | str = "solve",
    adjacency: str = "zero-out",
    plain_mean: bool = False,
    name: str = "flower",
) -> dict[str, Any]:
    """Return the document of a training with a strategy of Flower that has fixed clipping.

    Args:
        strategy: A `DifferentialPrivacyServerSideFixedClipping` or `DifferentialPrivacyClientSideFixedClipping` around `FedAvg`.
        rounds: How many rounds it trains.
        clients: How many clients are connected in every round, a public number.
        delta: δ of the document.
        epsilon: ε of the document; by default it is solved for.
        adjacency: `zero-out`, `replace-one` or `add-remove`. Under the latter the bound includes that another client takes the
            place of a removed one.
        plain_mean: States that every release was the plain mean over exactly `num_sampled_clients` clients: all weights equal,
            no client silent. With an accountant of its own the strategy checks this, and the statement is not needed.
        name: The name of the document.

    Raises:
        DocumentError: For any other strategy, without `plain_mean`, for a subclass of FedAvg that takes the mean or draws clients
            in a way of its own, or if FedAvg draws another number of clients than the noise is for.
    """
    kinds = [kind.__name__ for kind in type(strategy).__mro__]
    if any(ADAPTIVE in kind or "Adaptive" in kind for kind in kinds):
        no_equivalent(
            (),
            "the strategy clips to one norm and scales the noise by the next one, which depends on what was released: no bound "
            "is implemented for it. Use fixed clipping, or PrivateFedAvg of pyaccount.integrations.flower",
            value=kinds[0],
        )
    if not any(kind.startswith("DifferentialPrivacy") and FIXED in kind for kind in kinds):
        no_equivalent(
            (),
            "only Flower's strategies with fixed clipping add noise that a document describes",
            value=kinds[0],
            allowed="DifferentialPrivacyServerSideFixedClipping, DifferentialPrivacyClientSideFixedClipping",
        )
    inner = getattr(strategy, "strategy", None)
    own = type(inner).__name__
    _check_methods(
        inner,
        ("aggregate_train", "aggregate_fit"),
        f"the noise is added to what {own} returns, and it is scaled for the mean of FedAvg: no bound is implemented for other "
        "strategies",
    )
    _check_methods(
        inner,
        ("configure_train", "configure_fit"),
        f"{own} draws clients with a method of its own (configure_train or configure_fit), and the document says that of FedAvg, "
        "a uniform draw of a fixed number: no bound is implemented for other draws",
    )
    if not plain_mean and getattr(strategy, "accountant", None) is None:
        no_equivalent(
            ("plain_mean",),
            "FedAvg weighs clients by the number of examples that they report, and takes the mean over those that answer; the "
            "noise is that of a plain mean over all that were drawn. Give plain_mean=True if all weights were equal and all "
            "drawn clients answered in every round, or give the strategy an accountant, with which Flower checks this",
            value=False,
            allowed="True",
        )
    drawn = whole_in(_field(strategy, "num_sampled_clients"), DATASET_SIZE, ("num_sampled_clients",))
    count = whole_in(clients, DATASET_SIZE, ("clients",))
    _check_drawn(inner, drawn, count)
    body = {
        "training": {
            "dataset_size": count,
            "expected_batch_size": drawn,
            "iterations": whole_in(rounds, ITERATIONS, ("rounds",)),
        },
        "sampler": {"kind": "fixed-size"},
        "noise": {"multiplier": real(_field(strategy, "noise_multiplier"), NOISE_MULTIPLIER, ("noise_multiplier",))},
    }
    return document([body], name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=1)


def from_mod(  # noqa: PLR0913 - what a mod does not have
    mod: object,
    *,
    answers: int,
    delta: float | str,
    epsilon: float | str = "solve",
    adjacency: str = "replace-one",
    name: str = "flower-client",
) -> dict[str, Any]:
    """Return the document of the answers of one client with Flower's `LocalDpMod`, which protects them from the server too.

    Args:
        mod: The mod. Its ε and δ only choose the noise, and are no guarantee of the document.
        answers: How often the client answers in the whole training.
        delta: δ of the document.
        epsilon: ε of the document; by default it is solved for.
        adjacency: `replace-one`, for other data of the client, or `zero-out`, for a client that changes nothing.
        name: The name of the document.

    Raises:
        DocumentError: If this is no such mod, for another adjacency, or if its noise has no guarantee.
    """
    if not any(kind.__name__ == "LocalDpMod" for kind in type(mod).__mro__):
        no_equivalent(
            (), "only Flower's LocalDpMod adds noise to answers", value=type(mod).__name__, allowed="LocalDpMod"
        )
    if adjacency not in ("replace-one", "zero-out"):
        no_equivalent(
            ("adjacency",),
            "the server knows which clients answer, so no noise hides that one was added or removed",
            value=adjacency,
            allowed="replace-one or zero-out",
        )
    norm = real(_field(mod, "clipping_norm"), SENSITIVITY, ("clipping_norm",))
    asked = real(_field(mod, "epsilon"), EPSILON, ("epsilon",))
    likely = real(_field(mod, "delta"), PROBABILITY_OF_FAILURE, ("delta",))
    moved = real(_field(mod, "sensitivity"), SENSITIVITY, ("sensitivity",))
    if asked == 0.0:
        no_equivalent(("epsilon",), "the mod divides by its ε, so it must be larger than 0", value=asked)
    # Rounded down, so that a document never has more noise than the mod.
    spread = moved * math.sqrt(2.0 * math.log(1.25 / likely)) / asked * (1.0 - 1e-14)
    body: BodyMapping = {
        "mechanism": {
            "kind": "gaussian",
            "sigma": spread,
            "sensitivity": 2.0 * norm if adjacency == "replace-one" else norm,
        },
        "count": whole_in(answers, COUNT, ("answers",)),
    }
    return document([body], name=name, adjacency=adjacency, delta=delta, epsilon=epsilon, group_size=1)


def _state(source: object) -> Mapping[str, Any]:
    """Return the state of an accountant."""
    made = getattr(source, "state_dict", None)
    state = made() if callable(made) else None
    if not isinstance(state, Mapping):
        wrong_type_error((), f"must be Flower's RdpAccountant or its state, not {quoted(source)}", source, "a state")
    return state


def _entry(entry: object, sampling: str, population: int, path: Path) -> BodyMapping:
    """Return the body of one entry, which is the same event several times."""
    if not isinstance(entry, Mapping):
        wrong_type_error(path, f"must be an event and a count, not {quoted(entry)}", entry, "a mapping")
    event = _mapping(entry, "event", path)
    inside = (*path, "event")
    noise = real(event.get("noise_multiplier"), NOISE_MULTIPLIER, (*inside, "noise_multiplier"))
    drawn = whole_in(event.get("sample_size"), DATASET_SIZE, (*inside, "sample_size"))
    among = whole_in(event.get("population_size"), DATASET_SIZE, (*inside, "population_size"))
    times = whole_in(entry.get("count"), ITERATIONS, (*path, "count"))
    if among != population or drawn > among:
        no_equivalent(
            (*inside, "population_size"),
            f"{drawn} of {among} clients were drawn, and the accountant is about {population}: every event has its population",
            value=among,
            allowed=str(population),
        )
    training: dict[str, Any] = {"iterations": times}
    kind = {"poisson": "poisson", "without-replacement": "fixed-size", "no-amplification": "none"}[sampling]
    if sampling == "poisson":
        rate = drawn / among
        # Rounded up, so that a document never has a smaller probability than the accountant.
        training["sampling_probability"] = (
            rate if Fraction(rate) >= Fraction(drawn, among) else math.nextafter(rate, 1.0)
        )
    elif sampling == "without-replacement":
        training |= {"dataset_size": among, "expected_batch_size": drawn}
    return {"training": training, "sampler": {"kind": kind}, "noise": {"multiplier": noise}}


def _why_not(sampling: str) -> str:
    """Return why a sampling has no document under the adjacency that is asked for."""
    if sampling == "no-amplification":
        return (
            "Flower draws a fixed number of clients, so another client takes the place of one that is removed, and the sum moves "
            "by two clip norms; the accountant counts one. Use zero-out if the number of clients is public, or from_strategy, "
            "which has the draws"
        )
    return f"the accountant's events are those of {sampling!r} under another relation"


def _check_methods(inner: object, names: tuple[str, str], why: str) -> None:
    """Raise `DocumentError` for a strategy none of whose methods of these names, in Flower's two interfaces, is FedAvg's."""
    known = [f"FedAvg.{name}" for name in names]
    if not any(getattr(getattr(type(inner), name, None), "__qualname__", None) in known for name in names):
        no_equivalent(("strategy",), why, value=type(inner).__name__, allowed="FedAvg")


def _check_drawn(inner: object, drawn: int, clients: int) -> None:
    """Raise `DocumentError` if FedAvg draws another number of clients than the noise is scaled for."""
    for share, least in (("fraction_train", "min_train_nodes"), ("fraction_fit", "min_fit_clients")):
        if hasattr(inner, share) and hasattr(inner, least):
            number = max(int(clients * float(getattr(inner, share))), int(getattr(inner, least)))
            if number != drawn:
                no_equivalent(
                    ("num_sampled_clients",),
                    f"FedAvg draws {number} of {clients} clients ({share} = {getattr(inner, share)!r}, {least} = "
                    f"{getattr(inner, least)!r}), and the noise is scaled for another number",
                    value=drawn,
                    allowed=str(number),
                )
            return
    no_equivalent(("strategy",), "the strategy does not say how many clients it draws", value=type(inner).__name__)


def _field(source: object, name: str) -> object:
    if not hasattr(source, name):
        no_equivalent(
            (name,), f"{type(source).__name__} has no {name}: this version of Flower is not known", value=None
        )
    return getattr(source, name)


def _mapping(source: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    found = source.get(name)
    if not isinstance(found, Mapping):
        wrong_type_error((*path, name), f"must be a mapping, not {quoted(found)}", found, "a mapping")
    return found


def _list(source: Mapping[str, Any], name: str) -> list[Any]:
    found = source.get(name)
    if not isinstance(found, list | tuple):
        wrong_type_error((name,), f"must be a list, not {quoted(found)}", found, "a list")
    return list(found)


def _text(config: Mapping[str, Any], name: str) -> str:
    found = config.get(name)
    if not isinstance(found, str):
        wrong_type_error(("config", name), f"must be a text, not {quoted(found)}", found, "a text")
    return str(found.value if hasattr(found, "value") else found)

"""Processes of opake as documents. Stand-ins have the names and fields of version 0.16.1, which needs torch."""

import dataclasses
import importlib.metadata
import importlib.util
from typing import Any

import pytest
from adapter_samples import only_problem
from plain_documents import sectioned
from snapshots import Snapshot

import pyaccount
from pyaccount.adapters import opake


@dataclasses.dataclass(frozen=True)
class Gaussian:
    noise_multiplier: float


@dataclasses.dataclass(frozen=True)
class NonPrivate:
    pass


@dataclasses.dataclass(frozen=True)
class EpsDelta:
    epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class Identity:
    pass


@dataclasses.dataclass(frozen=True)
class AdaClip:
    inner: Any
    fraction_noise_std: float
    expected_batch_size: float
    num_groups: int = 1


@dataclasses.dataclass(frozen=True)
class Poisson:
    inner: Any
    sample_rate: float
    truncated_batch_size: int | None = None
    dataset_size: int | None = None


@dataclasses.dataclass(frozen=True)
class ParallelPoisson:
    inner: Poisson
    num_workers: int


@dataclasses.dataclass(frozen=True)
class KOutOfT:
    inner: Any
    k: int
    n_steps: int
    allocation: str


@dataclasses.dataclass(frozen=True)
class Composed:
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Repeated:
    inner: Any
    count: int


@dataclasses.dataclass(frozen=True)
class IdentityStrategy:
    pass


@dataclasses.dataclass(frozen=True)
class BandMfStrategy:
    bands: int

    def coefficients(self, *, n_steps: int, **_: Any) -> list[float]:
        """Of this length, with zeros after the bands."""
        return [3.0, 4.0, 0.0, 0.0, 0.0, 0.0][:n_steps] if self.bands == 2 else [1.0]


@dataclasses.dataclass(frozen=True)
class BltStrategy:
    max_buffers: int = 10


@dataclasses.dataclass(frozen=True)
class MfGaussian:
    noise_multiplier: float
    strategy: Any
    n_steps: int | None = None
    min_sep: int = 1
    max_participations: int | None = None


@dataclasses.dataclass(frozen=True)
class CyclicPoisson:
    inner: MfGaussian
    sample_rate: float
    n_steps: int
    truncated_batch_size: int | None = None
    dataset_size: int | None = None


@dataclasses.dataclass(frozen=True)
class BMinSep:
    inner: MfGaussian
    n_steps: int
    p0: float


@dataclasses.dataclass(frozen=True)
class BallsInBins:
    inner: MfGaussian
    num_bins: int
    n_steps: int


def state(process: Any) -> dict[str, Any]:
    """As `opake.serialization.state_dict` writes a process: its fields under the name of its class."""
    found = {"type": type(process).__name__}
    for field in dataclasses.fields(process):
        value = getattr(process, field.name)
        found[field.name] = state(value) if dataclasses.is_dataclass(value) else value
    return found


def read(process: Any, adjacency: str = "add-remove") -> dict[str, Any]:
    found = opake.from_process(process, adjacency=adjacency, delta=1e-5)
    return {key: value for key, value in found.items() if key not in ("pyaccount", "name", "privacy")}


STEP = Poisson(Gaussian(1.1), 0.01)
POISSON = sectioned(sampling_probability=0.01, iterations=600, sampler="poisson", multiplier=1.1)


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for section, values in expected.items():
        assert {key: found[section][key] for key in values} == values


@pytest.mark.parametrize("as_state", [False, True])
def test_steps_that_are_repeated_are_rounds(as_state: bool) -> None:
    process: Any = Repeated(STEP, 600)
    for composed in (process, Composed(Repeated(STEP, 400), Composed(Identity(), Repeated(STEP, 200)))):
        same(read(state(composed) if as_state else composed), POISSON)


def test_thousands_of_single_steps() -> None:
    process: Any = STEP
    for _ in range(5_000):
        process = Composed(process, STEP)
    same(read(process), POISSON | {"training": {"iterations": 5_001}})


def test_truncated_batches_and_workers() -> None:
    found = read(Repeated(Poisson(Gaussian(1.1), 0.01, 700, 50_000), 3), "zero-out")
    same(found, {"training": {"dataset_size": 50_000, "iterations": 3}, "sampler": {"truncate_to": 700}})
    same(read(ParallelPoisson(STEP, 4)), {"sampler": {"kind": "poisson", "draws_per_iteration": 4}})
    assert "draws_per_iteration" not in read(ParallelPoisson(STEP, 1))["sampler"]


def test_adaptive_clipping_releases_counts() -> None:
    """opake 0.16.1 says a sensitivity of 1.014889156509222 for σ = 1, counts with noise 5 and three groups."""
    found = read(Repeated(Poisson(AdaClip(Gaussian(1.0), 0.05, 100.0, 3), 0.01), 10))
    assert [release["multiplier"] for release in found["noise"]["also"]] == [10.0] * 3
    head = {"pyaccount": 1, "name": "a", "privacy": {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-5}}
    (phase,) = pyaccount.certify(head | found).data.phases
    assert phase.effective_noise_multiplier == pytest.approx(1 / 1.014889156509222, rel=1e-12)


def test_allocations() -> None:
    total = read(Repeated(KOutOfT(Gaussian(1.0), 2, 6, "total"), 3))
    same(total, {"training": {"iterations": 18}, "sampler": {"iterations_per_allocation": 6, "participations": 2}})
    blocks = read(KOutOfT(Gaussian(1.0), 2, 6, "block"))
    same(blocks, {"training": {"iterations": 6}, "sampler": {"iterations_per_allocation": 3}})
    uneven = read(KOutOfT(Gaussian(1.0), 3, 8, "block"))
    assert [phase["training"]["iterations"] for phase in uneven["phases"]] == [2, 6]
    assert [phase["sampler"]["iterations_per_allocation"] for phase in uneven["phases"]] == [2, 3]


def test_whole_runs() -> None:
    plain, banded = MfGaussian(2.0, IdentityStrategy()), MfGaussian(2.0, BandMfStrategy(2))
    same(read(CyclicPoisson(plain, 0.1, 6)), {"sampler": {"kind": "poisson"}, "noise": {"multiplier": 2.0}})
    matrix = {"matrix": {"kind": "toeplitz", "coefficients": [3.0, 4.0]}, "noise": {"multiplier": 0.4}}
    same(read(CyclicPoisson(banded, 0.1, 6)), {"sampler": {"kind": "cyclic-poisson", "partitions": 2}} | matrix)
    rate = {"training": {"participation_rate": 0.1, "iterations": 6}}
    same(read(BMinSep(banded, 6, 0.1)), {"sampler": {"kind": "b-min-sep", "min_separation": 2}} | matrix | rate)
    same(read(BallsInBins(plain, 3, 6)), {"sampler": {"kind": "balls-in-bins", "bins": 3}})
    assert read(Repeated(BallsInBins(plain, 3, 6), 5))["count"] == 5
    bare = read(MfGaussian(2.0, BandMfStrategy(2), 6, 2, 3))
    same(bare, {"sampler": {"kind": "none", "min_separation": 2, "max_participations": 3}} | matrix)


#: ε of processes with stated guarantees by the extension module of opake-accounting 0.16.1, on its grid of 1e-4.
STATED = [
    (Repeated(EpsDelta(0.5, 1e-7), 3), 1e-5, 1.4999902999500148),
    (Repeated(EpsDelta(0.5, 1e-7), 10), 1e-5, 4.99999099995005),
    (Composed(Repeated(EpsDelta(0.5, 1e-7), 2), Repeated(STEP, 600)), 1e-5, 2.182186564196878),
    (Composed(EpsDelta(2.0, 0.0), Gaussian(2.0)), 1e-5, 3.993091407009454),
]


def native() -> Any:
    """The extension module of opake's accountant, which loads without torch."""
    reason = "opake-accounting is not installed: stated guarantees are compared with recorded values alone"
    try:
        files = importlib.metadata.files("opake-accounting") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(reason)
    (path,) = (file.locate() for file in files if file.name.startswith("opake_accounting.") and file.suffix == ".so")
    spec = importlib.util.spec_from_file_location("opake_accounting", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def distribution(library: Any, process: Any) -> Any:
    """The privacy loss distribution of a process by opake's extension module."""
    config = library.DiscretizationConfig(discretization=1e-4)
    if isinstance(process, Composed):
        return distribution(library, process.left).compose(distribution(library, process.right))
    if isinstance(process, Repeated):
        return distribution(library, process.inner).self_compose(process.count)
    if isinstance(process, EpsDelta):
        return library.eps_delta_pld(process.epsilon, process.delta, config)
    if isinstance(process, Poisson):
        return library.poisson_pld(distribution(library, process.inner), process.sample_rate)
    return library.gaussian_pld(process.noise_multiplier, config)


@pytest.mark.usefixtures("without_profiles")
@pytest.mark.parametrize(("process", "delta", "recorded"), STATED, ids=lambda value: str(value)[:40])
def test_stated_guarantees_are_those_of_opake(process: Any, delta: float, recorded: float) -> None:
    """opake's grid lies above: its ε is at least the exact one, and here it exceeds it by at most a tenth."""
    found = opake.from_process(process, adjacency="add-remove", delta=delta)
    assert opake.from_process(state(process), adjacency="add-remove", delta=delta) == found
    certificate = pyaccount.certify(found)
    assert certificate.epsilon <= recorded * (1 + 1e-9)
    assert recorded <= 1.1 * certificate.epsilon_lower


@pytest.mark.parametrize(("process", "delta", "recorded"), STATED, ids=lambda value: str(value)[:40])
def test_recorded_values_are_those_of_the_installed_opake(process: Any, delta: float, recorded: float) -> None:
    assert distribution(native(), process).epsilon_at(delta) == pytest.approx(recorded, rel=1e-9)


def test_stated_guarantees_are_phases() -> None:
    assert read(EpsDelta(2.0, 0.0)) == {"mechanism": {"kind": "stated", "epsilon": 2.0}}
    found = read(Composed(Repeated(EpsDelta(1.0, 1e-7), 3), Composed(EpsDelta(0.0, 0.0), STEP)))
    assert found["phases"][0] == {"mechanism": {"kind": "stated", "epsilon": 1.0, "delta": 1e-7}, "count": 3}
    assert len(found["phases"]) == 2


@pytest.mark.parametrize(
    "process",
    [
        NonPrivate(),
        Identity(),
        Poisson(NonPrivate(), 0.1),
        Poisson(Gaussian(-1.0), 0.1),
        Poisson(Gaussian(1.0), 1.5),
        Poisson(EpsDelta(1.0, 1e-6), 0.1),
        EpsDelta(1.0, 1.0),
        EpsDelta(-1.0, 0.0),
        EpsDelta(0.0, 0.0),
        object(),
        {"type": "Poisson", "sample_rate": 0.1},
        {"sample_rate": 0.1},
        Repeated(STEP, 0),
        BallsInBins(MfGaussian(1.0, BltStrategy()), 3, 6),
        BMinSep(MfGaussian(1.0, IdentityStrategy()), 6, 0.1),
        MfGaussian(1.0, IdentityStrategy()),
        state(BMinSep(MfGaussian(1.0, BandMfStrategy(2)), 6, 0.1)),
    ],
)
def test_what_is_no_document(process: Any, snapshot: Snapshot) -> None:
    snapshot(only_problem(opake.from_process, process, adjacency="add-remove", delta=1e-5))

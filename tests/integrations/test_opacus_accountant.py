"""The accountant in Opacus's registry, beside Opacus's own: engines, states, calibration, and what it refuses."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyaccount import DocumentError, certify
from pyaccount.adapters.opacus import from_history
from pyaccount.errors import RunError

WHY = "the accountant in its registry is NOT tested here"
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
opacus = pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")

from opacus.accountants import create_accountant, register_accountant  # noqa: E402 - after the skips
from opacus.accountants.utils import get_noise_multiplier  # noqa: E402
from opacus.schedulers import ExponentialNoise  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402

from pyaccount.integrations.opacus_accountant import OpacusAccountant  # noqa: E402

# Opacus registers hooks in a way that PyTorch warns about, and its accountants warn of orders.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning", "UserWarning")
]

DELTA = 1e-5
HISTORIES = {
    "few steps": [(2.0, 0.1, 100)],
    "small rate": [(0.7, 0.004, 20_000)],
    "large rate": [(1.5, 0.04, 2250)],
    "two phases": [(1.1, 0.01, 600), (0.9, 0.02, 200)],
    "every record": [(5.0, 1.0, 10)],
}


def spent(mechanism: str, history: list[Any], delta: float = DELTA) -> float:
    accountant = create_accountant(mechanism)
    accountant.history = list(history)
    return float(accountant.get_epsilon(delta))


def private(engine: Any, records: int = 64, batch: int = 8, **options: Any) -> tuple[Any, Any, Any]:
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(records, 4), torch.zeros(records).long())
    model = torch.nn.Linear(4, 2)
    made = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "data_loader": torch.utils.data.DataLoader(data, batch_size=batch),
        "max_grad_norm": 1.0,
        **options,
    }
    make = engine.make_private_with_epsilon if "target_epsilon" in options else engine.make_private
    result: tuple[Any, Any, Any] = make(**made)
    return result


def epoch(model: Any, optimizer: Any, loader: Any, every: int = 1) -> None:
    for number, (inputs, labels) in enumerate(loader, 1):
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        if number % every == 0:
            optimizer.step()
            optimizer.zero_grad()


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("name", HISTORIES)
def test_its_epsilon_is_between_both_ends_and_not_above_that_of_renyi_divergences(name: str) -> None:
    history = HISTORIES[name]
    certificate = certify(from_history(history, delta=DELTA))
    found = spent("pyaccount", history)
    assert certificate.epsilon_lower <= found <= certificate.epsilon * (1 + 1e-6)
    assert found <= spent("rdp", history)
    # Opacus's other accountant states an error of 0.01.
    assert certificate.epsilon_lower - 0.01 <= spent("prv", history) <= found + 0.02


def test_its_name_is_registered() -> None:
    assert isinstance(create_accountant("pyaccount"), OpacusAccountant)
    assert OpacusAccountant.mechanism() == create_accountant("pyaccount").mechanism() == "pyaccount"
    with pytest.raises(ValueError, match="already registered"):
        register_accountant("pyaccount", OpacusAccountant)
    assert isinstance(opacus.PrivacyEngine(accountant="pyaccount").accountant, OpacusAccountant)
    with pytest.raises(ValueError, match="Unexpected accounting mechanism"):
        create_accountant("pyaccounts")


def test_nothing_of_opacus_is_imported_without_being_asked_for() -> None:
    program = (
        "import sys, pyaccount, pyaccount.adapters.opacus; print({'torch', 'opacus', 'dp_accounting'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_steps_are_counted_as_a_history() -> None:
    accountant = create_accountant("pyaccount")
    assert (len(accountant), accountant.get_epsilon(DELTA)) == (0, 0.0)
    for noise, count in ((1.5, 30), (1.2, 5), (1.5, 2)):
        for _ in range(count):
            accountant.step(noise_multiplier=noise, sample_rate=0.04)
    assert accountant.history == [(1.5, 0.04, 30), (1.2, 0.04, 5), (1.5, 0.04, 2)]
    assert len(accountant) == 37
    assert accountant.get_epsilon(delta=DELTA) == spent("pyaccount", accountant.history)


def test_a_step_without_noise_has_no_guarantee() -> None:
    assert spent("pyaccount", [(1.0, 0.01, 10), (0.0, 0.01, 1)]) == math.inf
    assert spent("pyaccount", [(1.0, 0.01, 10)], delta=0.0) == math.inf
    assert spent("pyaccount", [(1.0, 0.01, 10)], delta=1.0) == 0.0
    with pytest.raises(ValueError, match="must be between 0 and 1"):
        spent("pyaccount", [(1.0, 0.01, 10)], delta=1.5)
    with pytest.raises(DocumentError, match="at most 1"):
        spent("pyaccount", [(1.0, 1.5, 10)])


def test_a_state_is_a_copy_with_the_name() -> None:
    accountant = create_accountant("pyaccount")
    accountant.step(noise_multiplier=1.5, sample_rate=0.04)
    state = accountant.state_dict({"epoch": 3})
    assert state == {"epoch": 3, "history": [(1.5, 0.04, 1)], "mechanism": "pyaccount"}
    assert state["history"] is not accountant.history
    accountant.step(noise_multiplier=1.5, sample_rate=0.04)
    assert state["history"] == [(1.5, 0.04, 1)]


@pytest.mark.parametrize(
    "state", [{}, {"epoch": 3}, {"history": []}, {"mechanism": "pyaccount"}, {"history": [], "mechanism": "rdp"}]
)
def test_a_state_of_something_else_is_not_loaded(state: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"annot be loaded"):
        create_accountant("pyaccount").load_state_dict(state)


def test_a_loaded_state_is_counted_on() -> None:
    first, second, whole = (create_accountant("pyaccount") for _ in range(3))
    for count, accountants in ((40, (first, whole)), (60, (second, whole))):
        if second in accountants:
            # Through JSON, in which entries become lists.
            second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for accountant in accountants:
            for _ in range(count):
                accountant.step(noise_multiplier=1.5, sample_rate=0.04)
    assert len(second) == 100
    assert second.get_epsilon(DELTA) == whole.get_epsilon(DELTA)


@pytest.mark.parametrize("length", [{"steps": 2000}, {"epochs": 90}], ids=["steps", "epochs"])
def test_calibrated_noise_meets_its_target_with_less_noise_than_by_renyi_divergences(length: dict[str, int]) -> None:
    asked = {"target_epsilon": 8.0, "target_delta": DELTA, "sample_rate": 0.04, **length}
    noise, more = (get_noise_multiplier(accountant=name, **asked) for name in ("pyaccount", "rdp"))
    steps = length.get("steps", int(90 / 0.04))
    assert 7.99 <= spent("pyaccount", [(noise, 0.04, steps)]) <= 8.0
    assert noise < more - 0.05


def test_an_engine_finds_the_noise_and_counts_its_steps() -> None:
    engine = opacus.PrivacyEngine(accountant="pyaccount")
    model, optimizer, loader = private(engine, target_epsilon=3.0, target_delta=DELTA, epochs=2)
    for _ in range(2):
        epoch(model, optimizer, loader)
    assert engine.accountant.history == [(optimizer.noise_multiplier, 1 / 8, 16)]
    assert 2.99 <= engine.get_epsilon(DELTA) <= 3.0
    with pytest.warns(UserWarning, match="non-zero privacy budget"):
        private(engine, target_epsilon=3.0, target_delta=DELTA, epochs=2)


def test_an_engine_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    first, second = (opacus.PrivacyEngine(accountant="pyaccount") for _ in range(2))
    model, optimizer, loader = private(first, noise_multiplier=1.3)
    epoch(model, optimizer, loader)
    first.save_checkpoint(path=tmp_path / "checkpoint", module=model, optimizer=optimizer)
    again, stepped, _ = private(second, noise_multiplier=1.3)
    second.load_checkpoint(path=tmp_path / "checkpoint", module=again, optimizer=stepped)
    assert second.accountant.state_dict() == first.accountant.state_dict()
    other = opacus.PrivacyEngine(accountant="rdp")
    with pytest.raises(ValueError, match="cannot be loaded"):
        other.load_checkpoint(path=tmp_path / "checkpoint", module=private(other, noise_multiplier=1.3)[0])


def test_scheduled_noise_is_that_of_every_step() -> None:
    engine = opacus.PrivacyEngine(accountant="pyaccount")
    model, optimizer, loader = private(engine, noise_multiplier=2.0)
    scheduler = ExponentialNoise(optimizer, gamma=0.9)
    for _ in range(3):
        epoch(model, optimizer, loader)
        scheduler.step()
    assert [(round(noise, 9), steps) for noise, _, steps in engine.accountant.history] == [
        (2.0, 8),
        (1.8, 8),
        (1.62, 8),
    ]
    assert spent("pyaccount", [(2.0, 1 / 8, 24)]) < engine.get_epsilon(DELTA) < spent("pyaccount", [(1.62, 1 / 8, 24)])


def test_a_batch_in_parts_is_a_step() -> None:
    engine = opacus.PrivacyEngine(accountant="pyaccount")
    model, optimizer, loader = private(engine, batch=32, noise_multiplier=1.3)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as parts:
        for inputs, labels in parts:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    assert engine.accountant.history == [(1.3, 1 / 2, 2)]


def test_steps_that_a_history_does_not_state_are_refused() -> None:
    engine = opacus.PrivacyEngine(accountant="pyaccount")
    with pytest.raises(RunError, match="the gradients of 2 batches were accumulated"):
        epoch(*private(engine, noise_multiplier=1.3, poisson_sampling=False), every=2)
    clipping = {
        "clipping": "adaptive",
        "target_unclipped_quantile": 0.5,
        "clipbound_learning_rate": 0.1,
        "max_clipbound": 10.0,
        "min_clipbound": 0.1,
        "unclipped_num_std": 10.0,
    }
    with pytest.raises(RunError, match="adaptive clipping"):
        epoch(*private(engine, noise_multiplier=1.3, **clipping))
    assert len(engine.accountant) == 0

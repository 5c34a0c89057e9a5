"""Without the package that a module is for, its import says how to install it."""

import importlib
import sys

import pytest
from snapshots import Snapshot


class Without:
    """Finds no module of a package that is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, *_: object) -> None:
        if name == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("training.torch", "torch"),
        ("training.clipping", "torch"),
        ("integrations.records", "torch"),
        ("integrations.transformers", "torch"),
        ("integrations.trl", "torch"),
        ("integrations.opacus", "torch"),
        ("integrations.opacus_accountant", "opacus"),
        ("integrations.ghost", "torch"),
        ("integrations.lightning", "torch"),
        ("integrations.flower", "flwr"),
        ("integrations.flower_clients", "flwr"),
        ("integrations.flower_accountant", "flwr"),
        ("integrations.dp_accounting", "dp_accounting"),
        ("training.jax", "jax"),
        ("integrations.jax_privacy", "jax"),
    ],
)
def test_the_way_out_is_told(module: str, package: str, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    for name in [
        name for name in sys.modules if name.startswith(("pyaccount.integrations", "pyaccount.training.torch"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("clipping", "jax"):
        monkeypatch.delitem(sys.modules, f"pyaccount.training.{name}", raising=False)
    # PyTorch cannot be loaded twice, and its name alone is imported first.
    for name in [
        name for name in sys.modules if name == package or (package != "torch" and name.startswith(f"{package}."))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without(package), *sys.meta_path])
    snapshot.raised(importlib.import_module, f"pyaccount.{module}")

"""Every public function has an example in its docstring, and every such example runs."""

import inspect
import re
import shutil
from pathlib import Path

import pytest
from attestation_tools import private_file
from places import ROOT
from securesystemslib.signer import CryptoSigner

import pyaccount

FUNCTIONS = [name for name in pyaccount.__all__ if inspect.isfunction(getattr(pyaccount, name))]


def examples(text: str | None) -> list[str]:
    """Return the blocks of Python in a docstring."""
    return re.findall(r"^```python\n(.*?)^```$", inspect.cleandoc(text or ""), flags=re.MULTILINE | re.DOTALL)


def test_every_public_function_has_an_example() -> None:
    assert [name for name in FUNCTIONS if not examples(getattr(pyaccount, name).__doc__)] == []


@pytest.mark.parametrize("name", ["", *FUNCTIONS])
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    claim = pyaccount.dp_sgd(noise_multiplier=2, delta=1e-5, sampling_probability=0.01, iterations=100)
    claim.save("training.cert.json")
    Path("model.safetensors").write_bytes(b"weights")
    private_file(tmp_path / "release.key", CryptoSigner.generate_ed25519().private_bytes)
    for code in examples(pyaccount.__doc__ if not name else getattr(pyaccount, name).__doc__):
        exec(compile(code, f"the example of {name or 'pyaccount'}", "exec"), {})

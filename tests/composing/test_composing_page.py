"""The page on composing: its Python runs, and its figures are those of its examples."""

import re

import pytest
import yaml
from places import EXAMPLES, ROOT

import pyaccount

#: The page up to the filters, whose code tests/house/test_readme.py runs.
PAGE = (ROOT / "docs" / "composing.md").read_text(encoding="utf-8").partition("\n## Adaptive composition\n")[0]


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The snippet prints the sentence of a joint guarantee."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    exec(compile(code, "composing.md", "exec"), {})
    assert "“count and training together, all fixed beforehand”" in capsys.readouterr().out


def test_the_figures_of_the_page() -> None:
    """The two examples have the joint ε that the page states."""
    sources = [pyaccount.certify(EXAMPLES / name) for name in ("cifar10-dp-sgd.yaml", "count-and-train.yaml")]
    (stated,) = re.findall(r"ε is (\d\.\d\d) at δ = 1e-5", PAGE)
    made = pyaccount.compose(sources, delta=1e-5)
    assert f"{made.epsilon:.2f}" == stated
    assert sum(source.epsilon for source in sources) == pytest.approx(12, rel=1e-4)
    assert sum(source.delta for source in sources) == pytest.approx(1.1e-5)


def test_the_document_of_the_page() -> None:
    """Stated guarantees from samples make the certificate one by confidence, with their failure probability."""
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    loaded = yaml.safe_load(text.replace("1e-", "1.0e-"))
    guarantee = pyaccount.certify(loaded).data.guarantee
    assert (guarantee.kind, guarantee.failure_probability) == ("confidence", 1e-7)
    del loaded["phases"][0]["mechanism"]["failure_probability"]
    guarantee = pyaccount.certify(loaded).data.guarantee
    assert (guarantee.kind, guarantee.failure_probability) == ("verified", 0.0)

"""A time limit that is reached after the guarantee is known: the certificate is valid, and says what is missing."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from drawn_once import Drawn
from gate_tools import save
from plain_documents import doc

import pyaccount
from pyaccount import cli
from pyaccount.certificate import Certificate
from pyaccount.errors import TIME_IS_UP, LimitError
from pyaccount.execute.engine import Engine
from pyaccount.execute.sampling.shards import Sampler

SAMPLED: dict[str, Any] = doc(
    "name='cut short' epsilon=2 delta=1e-2 participation_rate=0.05 iterations=32 sampler=b-min-sep",
    "min_separation=4 start=warm matrix=banded-square-root bands=4 multiplier=solve profile=[1,2,3]",
    "tolerance=0.05 seed=5",
)
#: Lower ends beside tests of plain samples have samples of their own.
PLAIN: dict[str, Any] = SAMPLED | {"accounting": SAMPLED["accounting"] | {"verification": "fixed-sample"}}
GROUP: dict[str, Any] = doc(
    "name='cut short' adjacency=add-remove group_size=2 delta=1e-6 sampling_probability=0.01",
    "iterations=100 sampler=poisson multiplier=1.0 profile=[0.5,1,2]",
)


@pytest.fixture(scope="module")
def sampled(drawn: Drawn) -> Certificate:
    """Return the certificate for which time was not up."""
    with drawn.used():
        return pyaccount.certify(SAMPLED)


def stop_at(monkeypatch: pytest.MonkeyPatch, stage: str, times: int = 1) -> None:
    """Let time be up when a stage of sampling is entered for the n-th time."""
    limited, seen = Sampler._limited, []

    @contextmanager
    def stopped(self: Sampler) -> Iterator[float | None]:
        now = self._stage
        if now.startswith(stage) and now not in seen:
            seen.append(now)
        if now.startswith(stage) and len(seen) >= times:
            raise LimitError(TIME_IS_UP)
        with limited(self) as remaining:
            yield remaining

    monkeypatch.setattr(Sampler, "_limited", stopped)


@pytest.mark.usefixtures("drawn_once")
@pytest.mark.parametrize(
    ("missing", "document"), [(["profile"], SAMPLED), (["lower ends", "profile"], PLAIN)], ids=["profile", "lower ends"]
)
def test_a_sampled_guarantee_stands_without_what_is_beside_it(
    missing: list[str],
    document: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, stage = pyaccount.certify(document), missing[0]
    with monkeypatch.context() as limited:
        stop_at(limited, stage)
        certificate = pyaccount.certify(document)
    assert certificate.data.not_computed == missing
    assert certificate.data.profile == []
    assert certificate.data.guarantee.kind == "verified"
    assert certificate.noise_multiplier == whole.noise_multiplier
    assert certificate.data.unamplified == whole.data.unamplified
    lower = whole.data.guarantee.epsilon_lower if stage == "profile" else 0.0
    assert certificate.data.guarantee.epsilon_lower == lower
    assert whole.data.not_computed == []
    path = save(tmp_path, json.loads(certificate.to_json()))
    assert cli.run(["report", str(path), "--format", "text"]) == 0
    assert "not computed" in capsys.readouterr().out
    assert "not computed" in certificate.to_markdown().lower()
    assert pyaccount.check(path, max_epsilon=2, max_delta=1e-2)
    # What is missing states nothing; the rest is retested.
    assert pyaccount.verify(path).agrees, pyaccount.verify(path).to_text()


@pytest.mark.usefixtures("drawn_once")
def test_an_accepted_value_stands_without_the_rest_of_the_search(
    sampled: Certificate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = sampled
    with monkeypatch.context() as limited:
        # The first value has two stages: one direction is tested there, the other one once, further below.
        stop_at(limited, "testing", 3)
        certificate = pyaccount.certify(SAMPLED)
    assert certificate.data.not_computed[0] == "search"
    assert certificate.data.guarantee.kind == "verified"
    assert certificate.noise_multiplier is not None
    assert whole.noise_multiplier is not None
    assert certificate.noise_multiplier > whole.noise_multiplier
    path = save(tmp_path, json.loads(certificate.to_json()))
    assert pyaccount.verify(path).agrees


def test_nothing_accepted_is_no_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_at(monkeypatch, "testing")
    with pytest.raises(LimitError, match="time limit"):
        pyaccount.certify(SAMPLED)


@pytest.mark.parametrize("part", ["profile", "curve", "group lemma"])
def test_a_composed_guarantee_stands_without_what_is_beside_it(
    part: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = pyaccount.certify(GROUP)
    curves, called = Engine.curves, 0

    def up(*_: Any, **__: Any) -> Any:
        raise LimitError(TIME_IS_UP)

    def up_after(calls: int, engine: Engine, *asked: Any) -> Any:
        """The first curves are those of the certified point, the next ones the profile, and then the curve."""
        nonlocal called
        called += 1
        return curves(engine, *asked) if called <= calls else up()

    with monkeypatch.context() as limited:
        if part == "profile":
            limited.setattr(Engine, "curves", lambda self, *asked: up_after(1, self, *asked))
        elif part == "curve":
            limited.setattr(Engine, "curves", lambda self, *asked: up_after(2, self, *asked))
        else:
            limited.setattr("pyaccount.execute.composed.group_lemma", up)
        certificate = pyaccount.certify(GROUP)
    assert certificate.data.not_computed == (["profile", "curve"] if part == "profile" else [part])
    assert certificate.data.guarantee == whole.data.guarantee
    assert (certificate.data.profile == []) == (part == "profile")
    assert (certificate.data.group_lemma is None) == (part == "group lemma")
    assert curves is Engine.curves
    path = save(tmp_path, json.loads(certificate.to_json()))
    assert pyaccount.verify(path).agrees, pyaccount.verify(path).to_text()


def test_a_forged_claim_is_not_hidden_behind_what_is_missing(tmp_path: Path) -> None:
    """A certificate that says that something was not computed still fulfils all its statements."""
    stated = json.loads(pyaccount.certify(GROUP).to_json())
    stated["guarantee"]["epsilon"] *= 0.9
    stated["solved"]["value"] = stated["guarantee"]["epsilon"]
    stated["not_computed"] = ["profile", "curve", "group lemma"]
    assert not pyaccount.verify(save(tmp_path, stated)).agrees


def test_a_guarantee_stands_without_those_of_the_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parts = [{"mechanism": {"kind": "laplace", "scale": scale}} for scale in (10, 20)]
    privacy = {"adjacency": "add-remove", "epsilon": "solve", "delta": 1e-6}
    document = {"pyaccount": 1, "name": "parts", "privacy": privacy, "phases": [{"parallel": parts}]}
    whole = pyaccount.certify(document)

    def up(*_: Any, **__: Any) -> Any:
        raise LimitError(TIME_IS_UP)

    with monkeypatch.context() as limited:
        limited.setattr("pyaccount.execute.composed._records", up)
        certificate = pyaccount.certify(document)
    assert certificate.data.not_computed == ["records"]
    assert certificate.data.records is None
    assert certificate.data.guarantee == whole.data.guarantee
    path = save(tmp_path, json.loads(certificate.to_json()))
    assert pyaccount.verify(path).agrees, pyaccount.verify(path).to_text()

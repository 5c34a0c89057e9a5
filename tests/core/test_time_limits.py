"""Calls of the core end at their time limit, whatever the threads of the pool are doing."""

import threading
from contextlib import suppress

import pytest
from plain_documents import document, one_step

import pyaccount
from pyaccount import _core
from pyaccount.errors import TIME_IS_UP, LimitError
from pyaccount.running import plan as running


def test_a_call_that_waits_for_its_turn_ends_at_its_time_limit() -> None:
    """Occupy the only thread of the pool with an hour of samples."""
    cancellation, begun = _core.Cancellation(), threading.Event()

    def occupy() -> None:
        sampled = _core.Sampled.renewal([1.0, 0.5], 2000, 2, 0.01, warm=True)
        with cancellation, suppress(KeyboardInterrupt):
            begun.set()
            sampled.simulate(
                "remove",
                sampled.plain_parameter,
                0.5,
                [],
                edges=(-1.0, 1.0),
                key=(1, 0, 0, 0),
                first=0,
                count=10**6,
                threads=1,
                time_limit=None,
            )

    occupying = threading.Thread(target=occupy)
    occupying.start()
    begun.wait()
    with pytest.raises(LimitError, match=TIME_IS_UP):
        pyaccount.certify(one_step(1.0), threads=1, time_limit=0.2)
    cancellation.cancel()
    occupying.join(60)
    assert not occupying.is_alive()
    assert pyaccount.certify(one_step(1.0), threads=1).holds


def test_a_deadline_ends_what_has_no_time_limit_of_its_own() -> None:
    profile = ([1.0] * 3, [1] * 3, 2.0**-4, 1e-6)
    with _core.Deadline(0.0):
        with pytest.raises(LimitError, match=TIME_IS_UP):
            _core.RoundProfile.allocation(*profile, reverse=False, below=False)
        with pytest.raises(LimitError, match=TIME_IS_UP):
            _core.Cancellation.check()
        # The innermost limit counts.
        with _core.Deadline(None):
            _core.Cancellation.check()
    _core.Cancellation.check()
    _core.RoundProfile.allocation(*profile, reverse=False, below=False)


def test_planning_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for this matrix, which planning needs, would take a minute."""
    monkeypatch.setattr(running, "UNCOUNTED", 0.0)
    searched = document(
        training={"dataset_size": 10_000, "iterations": 20_000},
        sampler={"kind": "none", "min_separation": 1000},
        matrix={"kind": "optimal-toeplitz", "bands": 1000},
        noise={"multiplier": 100.0},
        privacy={"adjacency": "zero-out", "epsilon": "solve", "delta": 1e-6},
    )
    with pytest.raises(LimitError) as caught:
        pyaccount.certify(searched, time_limit=0.05)
    assert caught.value.stage == "planning"
    assert str(caught.value).startswith(f"{TIME_IS_UP}: 0.05 s, set by time_limit=")

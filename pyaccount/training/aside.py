"""`aside`, which computes something in a thread while its caller computes something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def aside(function: Callable[..., T], *arguments: Any) -> Callable[[], T]:
    """Begin to compute `function(*arguments)` in a thread, and return a function that waits for the result and returns it.

    If the computation raises an error, that function raises it. The function must not change anything that somebody else reads: a
    caller that is interrupted does not wait for it.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def compute() -> None:
        try:
            results.append(function(*arguments))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=compute, daemon=True)
    thread.start()

    def result() -> T:
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    return result

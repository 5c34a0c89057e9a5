"""A grid of Flower whose clients answer in this process. It needs flwr, and is imported after the tests have looked for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flwr.serverapp import Grid


class OneProcess(Grid):  # type: ignore[misc, unused-ignore]
    """Hands messages to a function of the node and the message, and its answers back in another order."""

    def __init__(self, nodes: Sequence[int], answer: Callable[[int, Any], Any]) -> None:
        self.nodes, self.answer, self.asked = list(nodes), answer, list[list[int]]()

    def get_node_ids(self) -> list[int]:
        return list(reversed(self.nodes))

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> Any:
        given = list(messages)
        self.asked.append([one.metadata.dst_node_id for one in given])
        answers = [self.answer(one.metadata.dst_node_id, one) for one in given]
        return [one for one in reversed(answers) if one is not None]

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def push_messages(self, messages: Any) -> Any:
        raise NotImplementedError

    def pull_messages(self, message_ids: Any) -> Any:
        raise NotImplementedError

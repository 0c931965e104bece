"""What the driver and the streaming queries of its script tell each other."""

import threading
from collections.abc import Callable, Mapping
from typing import Any


class StreamControl:
    """The wish to end the queries after their current micro-batch, and the last trigger of each query."""

    def __init__(self, on_news: Callable[[], None] = lambda: None) -> None:
        self.stopping = threading.Event()  # each query ends after its current micro-batch
        self._on_news = on_news
        self._triggers: dict[str, Mapping[str, Any]] = {}

    def triggered(self, target: str, facts: Mapping[str, Any]) -> None:
        """Show these facts as the last trigger of the query that writes `target`."""
        self._triggers = {**self._triggers, target: facts}
        self._on_news()

    def shown(self) -> dict[str, Any]:
        """The last triggers as the part `streams` of the progress, by target; empty without any."""
        return {"streams": self._triggers} if self._triggers else {}

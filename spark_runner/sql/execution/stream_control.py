"""What the driver and the writes of its script tell each other."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spark_runner.push.pushes import Pushes


class StreamControl:
    """The wish to end queries after their micro-batch, the last trigger of each of them, and the pushes."""

    def __init__(self, on_news: Callable[[], None] = lambda: None) -> None:
        self.stopping = threading.Event()  # each query ends after its current micro-batch
        self.pushes = Pushes()
        self._on_news = on_news
        self._triggers: dict[str, Mapping[str, Any]] = {}
        self._batches = 0  # of all queries since the start of the driver

    def triggered(self, target: str, facts: Mapping[str, Any]) -> None:
        """Show these facts as the last trigger of the query that writes `target`.

        `batch` is the number of its micro-batch, `total_rows` what the query has written since its start.
        """
        self._batches += facts.get("batch") != self._triggers.get(target, {}).get("batch")
        self._triggers = {**self._triggers, target: facts}
        self._on_news()

    def shown(self) -> dict[str, Any]:
        """The parts `streams` and `pushes` of the progress, by target; empty without any."""
        found = {"streams": self._triggers, **self.totals()} if self._triggers else {}
        pushes = self.pushes.document()
        return {**found, "pushes": pushes} if pushes else found

    def totals(self, results: Iterable[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """The rows and micro-batches of all queries as the part `streamed` of progress and outcome.

        `results` are those of ended INSERTs: the report of a last trigger may come after them.
        """
        ended = [result for result in results if "batches" in result]
        if ended:
            rows, batches = (sum(int(result[name]) for result in ended) for name in ("rows", "batches"))
        elif self._triggers:
            rows = sum(int(facts.get("total_rows") or 0) for facts in self._triggers.values())
            batches = self._batches
        else:
            return {}
        return {"streamed": {"rows": rows, "batches": batches}}

"""Makes the table of docs/metrics.md from the metrics that a worker serves."""

from collections.abc import Iterator
from unittest.mock import MagicMock

from prometheus_client import Metric

from docs.generated import Part, code, prose, table
from orchestrator.metrics.registry import Metrics, QueueEvents
from orchestrator.worker.measures import JobMeasures, WorkerMeasures
from queues import SessionState

_PREFIX = "orchestrator_"
_LABELS = "_labelnames"  # the library has no other place for the labels of a metric without samples


def made() -> str:
    """One row per metric of this project, by name."""
    return table(("metric", "type", "labels", "meaning"), sorted(_rows()))


def _rows() -> Iterator[tuple[str, str, str, str]]:
    metrics = Metrics()
    metrics.ask_logs(lambda: MagicMock(__getitem__=lambda *_: 0))
    metrics.ask_spool(lambda: (0, 0))
    for listener in (QueueEvents(metrics.registry), JobMeasures(metrics.registry)):
        for measure in vars(listener).values():
            (described,) = measure.describe()
            yield _row(described, getattr(measure, _LABELS))
    for collector in (metrics, WorkerMeasures(_idle_worker())):
        for family in collector.collect():
            yield _row(family, getattr(family, _LABELS))


def _row(family: Metric, labels: tuple[str, ...]) -> tuple[str, str, str, str]:
    name = family.name + "_total" * (family.type == "counter")
    return code(name), family.type, ", ".join(map(code, labels)), prose(family.documentation)


def _idle_worker() -> MagicMock:
    worker = MagicMock(probes=[], refused=None, slots=1)
    worker.dispatcher.in_flight.count.return_value = 0
    worker.dispatcher.in_flight.count_out_of_reach.return_value = 0
    worker.water.lines = {}
    worker.sessions.first = MagicMock(state=SessionState.CONNECTED, generation=0)
    worker.sessions.first.seconds_without_contact.return_value = 0
    return worker


PART = Part(__file__, "metrics.md", "the metrics of a worker", made)

if __name__ == "__main__":
    PART.write()

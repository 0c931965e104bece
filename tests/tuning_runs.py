"""Runs as the history has them, and what is decided after them, for tests without servers."""

from collections.abc import Mapping
from typing import Any

from orchestrator.history.key import Key
from orchestrator.tuning.decision import Choice, Decision, Situation, decide
from orchestrator.tuning.resources import Resource

KEY = Key("c0de", "-")
MIB = 1 << 20
CLUSTER = {"spark.master": "spark://h:7077", "spark.executor.memory": "8g", "spark.executor.instances": "4"}
LOCAL = {"spark.master": "local[2]", "spark.driver.memory": "8g"}
HEAP = Resource.EXECUTOR_MEMORY


def run(
    number: int, *, asked: Mapping[str, str] = CLUSTER, peak: float = 1000, **facts: Any
) -> dict[str, Any]:
    """A run that succeeded with what was asked for, unless `settings` says what it had."""
    executors = {"number": 4, "cores": 2, "heap_peak_bytes": int(peak * MIB), **facts.pop("executors", {})}
    metrics = {
        "seconds": 100.0,
        "task_seconds": 700.0,
        "cpu_seconds": 500.0,
        "gc_share": 0.05,
        "spill_disk_bytes": 0,
        "executors": executors,
        "driver": {"heap_peak_bytes": int(peak * MIB), "rss_peak_bytes": int(1.2 * peak * MIB)},
        **facts.pop("metrics", {}),
    }
    return {
        "run": f"key-{number}",
        "state": "succeeded",
        "ended": f"2026-11-01T00:{number:02}:00Z",
        "settings": dict(asked),
        "asked": {name: text for name, text in asked.items() if name != "spark.master"},
        "code": KEY.code,
        "parameters": KEY.parameters,
        "metrics": metrics,
        **facts,
    }


def decided(runs: list[dict[str, Any]], **facts: Any) -> Decision:
    return decide(runs, Situation(KEY, **{"asked": CLUSTER, "now": "2026-11-02T00:00:00Z", **facts}))


def choice(decision: Decision, resource: Resource = HEAP) -> Choice:
    return next(each for each in decision.choices if each.resource is resource)


def had(memory: str, number: int, **facts: Any) -> dict[str, Any]:
    """A run that the tuning has given another heap."""
    return run(number, settings={**CLUSTER, "spark.executor.memory": memory}, **facts)

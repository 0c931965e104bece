"""The limits of the micro-batches of a running job. What a driver reports may have any type."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from orchestrator.logs.visible import visible
from spark_runner.protocol.text import shortened

_MAX_STREAMS = 20
_MAX_NAME, _MAX_REASON = 60, 400  # characters
_MAX_NUMBER = 1e15
_BY = {"tuning": "tuned", "operator": "set by an operator", "table": "of its table"}


def batch_limits(progress: Mapping[str, Any]) -> Iterator[str]:
    """A line for each stream whose limit is not simply that of its table."""
    for target, facts in islice(_mapping(progress.get("streams")).items(), _MAX_STREAMS):
        limit = _mapping(_mapping(facts).get("limit"))
        rows = limit.get("rows")
        if not _is_number(rows):
            continue
        by = _BY.get(str(limit.get("by")), "")
        if _is_number(seconds := limit.get("target_seconds")):
            by += f" for {seconds:g} s"
        text = f"stream into {_text(target, _MAX_NAME)}: at most {rows:,.0f} rows in a micro-batch, {by}"
        reason = limit.get("reason")
        yield f"{text} ({_text(reason, _MAX_REASON)})" if isinstance(reason, str) else text


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_number(value: object) -> bool:
    return type(value) in {int, float} and 0 <= value <= _MAX_NUMBER  # type: ignore[operator]  # it is a number


def _text(value: object, most: int) -> str:
    return visible(shortened(str(value), most)).replace("\n", r"\n")

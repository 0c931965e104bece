"""The daily indices: their template, their size, and those beyond their retention."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.http import Http, as_json, http_of

VERSION = 3  # increment it with each change, so that servers get the new template
_PRIORITY = 210  # above Elastic's built-in templates, which have 100 to 200
_NOT_FOUND = 404

_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_LONG = {"type": "long", "ignore_malformed": True}
# Fields to search and sort by. Each keyword costs the server about a microsecond per document; a dozen more
# (source location, thread) would cost a sixth of its throughput.
_KEYWORDS = (
    *("log.level", "log.logger", "log.stream", "event.dataset", "event.kind", "event.action"),
    *("host.name", "service.name", "error.type", "spark.application_id", "spark.executor_id"),
    *("job.id", "job.run_key", "job.name", "job.pool", "job.status", "job.queue"),
    *("user.name", "audit.kind", "audit.target"),
)
_NUMBERS = ("job.attempt", "spark.stage_id", "spark.task_id")


def template(alias: str) -> dict[str, Any]:
    """The template of the indices `<alias>-<day>`."""
    properties: dict[str, Any] = {
        "@timestamp": {"type": "date_nanos"},
        "message": {"type": "text", "norms": False},
        "error.message": {"type": "text", "norms": False},
        "event.sequence": {"type": "long", "index": False},  # for sorting
        "labels": {"type": "flattened", "ignore_above": 1024},
        **dict.fromkeys(_KEYWORDS, _KEYWORD),
        **dict.fromkeys(_NUMBERS, _LONG),
    }
    return {
        "index_patterns": [f"{alias}-*"],
        "priority": _PRIORITY,
        "version": VERSION,
        "_meta": {"description": "Logs of spark-job-orchestrator; made by it, kept by version"},
        "template": {
            "aliases": {alias: {}},
            "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1"},
            # Other fields are stored but not indexed, so that no field of a user can make a record fail.
            # Dotted names stay names: expanding them to objects is a sixth of the server's work.
            "mappings": {"dynamic": False, "subobjects": False, "properties": properties},
        },
    }


def install_template(http: Http, alias: str) -> None:
    """Install the template, unless the server has this version or a newer one.

    Raises TargetRefuses, TargetUnreachable.
    """
    path = f"/_index_template/{quote(alias, safe='')}"
    installed = http.request("GET", path)
    if installed.status != _NOT_FOUND:
        found = installed.document(f"the index template {alias} cannot be read")
        if int(found["index_templates"][0]["index_template"].get("version") or 0) >= VERSION:
            return
    http.request("PUT", path, as_json(template(alias))).document(f"the index template {alias} was refused")


def template_file(alias: str) -> str:
    """The text of the file in deploy/, for manual installation."""
    return json.dumps(template(alias), indent=2) + "\n"


_WANTED = "indices.*.primaries.docs.count,indices.*.total.store.size_in_bytes"
_WHAT = "the indices of logs"


@dataclass(frozen=True, slots=True)
class DailyIndex:
    """The index of one day."""

    name: str
    day: date
    documents: int
    size_bytes: int


class DailyIndices:
    """The daily indices of one alias. Every method raises TargetUnreachable or TargetRefuses."""

    def __init__(self, http: Http, alias: str, zone: str = "UTC") -> None:
        self._http, self._alias, self._zone = http, alias, ZoneInfo(zone)

    def all(self) -> Sequence[DailyIndex]:
        """All daily indices, oldest first. Indices whose suffix is not a date are left out."""
        # `_stats` needs privileges on the indices only; `_cat/indices` needs one on the cluster.
        path = f"/{self._alias}-*/_stats/docs,store?filter_path={_WANTED}"
        answer = self._http.request("GET", path)
        found = list[DailyIndex]()
        name = re.compile(rf"{re.escape(self._alias)}-(\d{{4}}-\d\d-\d\d)")
        indices = {} if answer.status == _NOT_FOUND else answer.document(_WHAT).get("indices", {})
        for index, facts in indices.items():
            if match := name.fullmatch(index):
                try:
                    day = date.fromisoformat(match[1])
                except ValueError:
                    continue
                count, size = facts["primaries"]["docs"]["count"], facts["total"]["store"]["size_in_bytes"]
                found.append(DailyIndex(index, day, int(count), int(size)))
        return sorted(found, key=lambda index: index.day)

    def older_than(self, days: int, *, today: date | None = None) -> Sequence[DailyIndex]:
        """The indices of days that ended more than `days` days ago, in the configured time zone."""
        first_kept = (today or datetime.now(self._zone).date()) - timedelta(days=days)
        return [index for index in self.all() if index.day < first_kept]

    def remove(self, index: DailyIndex) -> None:
        """Delete an index; an index that is already gone is no error."""
        answer = self._http.request("DELETE", f"/{index.name}")
        if answer.status != _NOT_FOUND:
            answer.document(_WHAT)


def daily_indices(settings: LogSettings) -> DailyIndices:
    """The daily indices that the settings name; raises TargetRefuses if a key or CA file cannot be read."""
    return DailyIndices(http_of(settings), settings.alias, settings.timezone)

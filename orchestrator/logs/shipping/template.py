"""The index template of the daily indices: what people search by is typed, what users add is flat."""

import json
from typing import Any
from urllib.parse import quote

from orchestrator.logs.shipping.http import Http, as_json

VERSION = 3  # to be raised with each change: a server gets a newer one once
_PRIORITY = 210  # above the templates that Elastic brings, which are at 100 to 200
_NOT_FOUND = 404

_KEYWORD = {"type": "keyword", "ignore_above": 1024}
_LONG = {"type": "long", "ignore_malformed": True}
# What people search and sort by. Each keyword costs the server about a microsecond per document, and the
# dozen that would be more (where in the source, which thread) took a sixth of its throughput.
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
        "event.sequence": {"type": "long", "index": False},  # to sort by
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
            # What is not named is kept and shown, and not searched: no record can fail for a field of a user.
            # And dotted names are names: to take them apart is a sixth of the server's work.
            "mappings": {"dynamic": False, "subobjects": False, "properties": properties},
        },
    }


def install_template(http: Http, alias: str) -> None:
    """Install it, unless this version or a newer one is there; raises TargetRefuses, TargetUnreachable."""
    path = f"/_index_template/{quote(alias, safe='')}"
    there = http.request("GET", path)
    if there.status != _NOT_FOUND:
        found = there.document(f"the index template {alias} cannot be read")
        if int(found["index_templates"][0]["index_template"].get("version") or 0) >= VERSION:
            return
    http.request("PUT", path, as_json(template(alias))).document(f"the index template {alias} was refused")


def template_file(alias: str) -> str:
    """As it stands in deploy/, for those who install it by hand."""
    return json.dumps(template(alias), indent=2) + "\n"

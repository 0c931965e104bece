"""The index template of the daily indices: searched fields are typed, labels of users are flattened."""

import json
from typing import Any
from urllib.parse import quote

from orchestrator.logs.shipping.http import Http, as_json

VERSION = 3  # increment it with each change: it makes servers get the new template
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
            # Dotted names stay names: to expand them to objects is a sixth of the server's work.
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

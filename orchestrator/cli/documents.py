"""JSON on stdout, for programs."""

import json
import sys
from collections.abc import Sequence

from orchestrator.cli.options import OutputFormat
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible_json

_MOST_INDENTED = 100  # rows: beyond, indentation would take most of the time of a command


def print_json(document: object, output: OutputFormat = OutputFormat.JSON) -> None:
    """Write one JSON document to stdout, indented or on one line for jsonl; secrets are masked."""
    if output is OutputFormat.JSON:
        text = json.dumps(REDACTOR.document(document), ensure_ascii=False, indent=2)
    else:
        text = _line(document)
    sys.stdout.write(visible_json(text) + "\n")


def print_json_rows(rows: Sequence[object], output: OutputFormat) -> None:
    """Write rows as a JSON array, many of them one to a line; or as JSON lines. Secrets are masked."""
    if output is OutputFormat.JSON and len(rows) <= _MOST_INDENTED:
        print_json(rows)
        return
    lines = visible_json("\n".join(map(_line, rows)))
    if output is OutputFormat.JSON:
        lines = "[\n" + lines.replace("\n", ",\n") + "\n]"
    sys.stdout.write(lines + "\n" if lines else "")


def _line(document: object) -> str:
    text = json.dumps(document, ensure_ascii=False)
    return (
        text if REDACTOR.is_clean_json(text) else json.dumps(REDACTOR.document(document), ensure_ascii=False)
    )

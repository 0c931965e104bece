"""JSON on stdout, for programs."""

import json
import sys

from orchestrator.cli.options import OutputFormat
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.visible import visible_json


def print_json(document: object, output: OutputFormat = OutputFormat.JSON) -> None:
    """Write one JSON document to stdout, indented or on one line for jsonl; secrets are masked."""
    indent = 2 if output is OutputFormat.JSON else None
    text = json.dumps(REDACTOR.document(document), ensure_ascii=False, indent=indent)
    sys.stdout.write(visible_json(text) + "\n")

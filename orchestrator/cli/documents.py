"""Data on stdout for programs."""

import json
import sys

from orchestrator.cli.options import OutputFormat


def print_json(document: object, output: OutputFormat = OutputFormat.JSON) -> None:
    """One JSON document on stdout: indented, or on one line for jsonl."""
    indent = 2 if output is OutputFormat.JSON else None
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=indent) + "\n")

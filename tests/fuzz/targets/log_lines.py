"""Logs of drivers, and the content of a spool."""

import json
import tempfile
from pathlib import Path

from orchestrator.driver_logs.documents import Documents
from orchestrator.driver_logs.records import records
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.reading.reader import SpooledLogs
from orchestrator.logs.record.document import Days
from orchestrator.logs.record.redaction import Redactor
from orchestrator.logs.spool.folder import SpoolFolder
from orchestrator.logs.spool.segments import framed
from spark_runner.runners.spark_log import SparkEvent, pieces
from tests.fuzz.promises import Broken

_ROOT = Path(tempfile.mkdtemp(prefix="orchestrator-fuzz-"))
_FOLDER = SpoolFolder.create(_ROOT).path
_WELL = b'{"create":{"_id":"well"}}\n{"@timestamp":"2026-01-31T12:00:00Z","message":"well"}\n'


def try_input(data: bytes) -> None:
    """Each line has a document of valid JSON, and hides no other line."""
    _check_documents(data)
    _check_spool(data)


def _check_documents(data: bytes) -> None:
    found = [*records(data, 0, whole=True)]
    if b"".join(record.data for record in found) != data:
        raise Broken("some of the log has no record")
    for stream in ("stdout", "stderr"):
        documents = Documents(
            Days("logs", "UTC"), Redactor(["hunter2hunter2"]), stream, "run", {"job.id": "x"}
        )
        for lines, _ in documents.build(found, 1.8e9):
            action, document, rest = lines.split(b"\n", 2)
            json.loads(action), json.loads(document)
            if rest or b"hunter2hunter2" in document:
                raise Broken(f"a document of {lines[:300]!r}")
    for line in data.splitlines(keepends=True):
        _check_pieces(line)


def _check_pieces(line: bytes) -> None:
    for _, piece in pieces(line):
        if not isinstance(piece, SparkEvent) and piece not in line:
            raise Broken(f"text that is not in the line {line[:300]!r}")


def _check_spool(data: bytes) -> None:
    # A damaged part of a segment must not hide the records behind it.
    (_FOLDER / "00000000.seg").write_bytes(data + framed(_WELL))
    if [entry.id for entry in SpooledLogs(_ROOT).new(LogQuery())] != ["well"]:
        raise Broken("damage in a spool hides the record behind it")

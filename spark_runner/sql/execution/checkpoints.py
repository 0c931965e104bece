"""The folder in which a streaming query keeps its progress, bound to what the query computes.

`orchestrator.json` beside the files of Spark has `fingerprint`, of the tables, views and the query, and
`stream`, the identity of all batches that this folder counts.
"""

import contextlib
import hashlib
import json
import urllib.parse
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from orchestrator.logs.files import FileLock
from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.text.passage import Passage
from spark_runner.sql.text.source import ScriptSource

RECORD = "orchestrator.json"
_PLACES = frozenset({"line", "column", "read", "written", "reads"})  # they compute nothing
_TEXTS = frozenset({"query", "columns", "expression", "type", "condition"})
_PACE = frozenset({"max_files_per_trigger"})


class Checkpoint:
    """One folder; `url` is absolute."""

    def __init__(self, session: SparkSession, url: str) -> None:
        java: Any = session._jsparkSession  # noqa: SLF001 - PySpark has no public access to a file system
        self.url = url
        jvm: Any = session._jvm  # noqa: SLF001 - likewise
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._io: Any = jvm.org.apache.commons.io.IOUtils
        self._folder: Any = self._path(url)
        self._files: Any = self._folder.getFileSystem(java.sessionState().newHadoopConf())

    @contextlib.contextmanager
    def opened(self, fingerprint: str) -> Iterator[str]:
        """The identity of the stream, which is new in an empty folder; the folder is locked on this host.

        Raises ConnectorError if it belongs to another query, or a running job uses it. In a file system of
        a cluster Spark itself ends the query whose batch another one has counted.
        """
        self._files.mkdirs(self._folder)
        uri = self._files.makeQualified(self._folder).toUri()
        lock = FileLock(Path(uri.getPath()), is_folder=True) if uri.getScheme() == "file" else None
        try:
            if lock and not _acquired(lock):
                raise ConnectorError(
                    f"refused: another running job uses the checkpoint '{self.url}'; wait for its end, or"
                    " give this job another name"
                )
            yield self._stream(fingerprint)
        finally:
            if lock:
                lock.release()

    def _stream(self, fingerprint: str) -> str:
        record = self._path(self._folder, RECORD)
        if not self._files.exists(record):
            if self._files.listStatus(self._folder):
                raise ConnectorError(f"refused: '{self.url}' is not empty, and has no {RECORD}")
            stream = uuid.uuid4().hex
            self._write(record, {"fingerprint": fingerprint, "stream": stream})
            return stream
        found = self._read(record)
        if found.get("fingerprint") != fingerprint:
            raise ConnectorError(
                "refused: the tables, views or the query of this INSERT are not those that its checkpoint"
                f" '{self.url}' counts; give the job another name, or delete that folder to read all data"
                " again"
            )
        return str(found["stream"])

    def _read(self, path: Any) -> Mapping[str, Any]:
        stream = self._files.open(path)
        try:
            text = self._io.toString(stream, "UTF-8")
        finally:
            stream.close()
        try:
            found = json.loads(text)
        except ValueError as error:
            raise ConnectorError(f"'{self.url}/{RECORD}' is damaged; delete '{self.url}'") from error
        return found if isinstance(found, dict) else {}

    def _write(self, path: Any, record: Mapping[str, str]) -> None:
        """Create the file as a whole: a driver may die at any moment."""
        beside = self._path(self._folder.getParent(), f".{self._folder.getName()}-{uuid.uuid4().hex}")
        out = self._files.create(beside, False)
        try:
            out.write(json.dumps(record).encode())
        finally:
            out.close()
        if not self._files.rename(beside, path):
            raise ConnectorError(f"'{path.toString()}' cannot be created")


def _acquired(lock: FileLock) -> bool:
    try:
        return lock.acquire()
    except OSError:
        return True  # this file system has no locks


def folder_name(table: str, which: str = "") -> str:
    """The name of the folder of a query: its table, and which of the queries of this table it is."""
    name = urllib.parse.quote(table.lower(), safe="")
    return f"{name},{which}" if which else name  # a quoted name has no comma


def fingerprint(plan: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> str:
    """A hash of what these steps compute: not of their places in the script, spaces, comments and pace."""
    source = ScriptSource(plan["file"], plan["source"])

    def meaning(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {name: meaning(each, name) for name, each in value.items() if name not in _PLACES | _PACE}
        if key in _TEXTS and isinstance(value, list):
            return [token.text for token in Passage.from_json(source, value, plan["values"]).tokens]
        return [meaning(each) for each in value] if isinstance(value, list) else value

    document = json.dumps([meaning(step) for step in steps], sort_keys=True, default=str)
    return hashlib.sha256(document.encode()).hexdigest()

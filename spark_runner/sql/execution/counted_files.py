"""Which files of a table a run has counted: several queries that read one file count its rows once."""

import hashlib
import json
from collections.abc import Hashable, Iterable
from collections.abc import Set as AbstractSet

from spark_runner.connectors.errors import ConnectorError
from spark_runner.sql.execution.stream_counts import StreamCounts

_PART = 10_000  # files named in one file


class CountedFiles:
    """The files of one source, with the micro-batch that has counted each; for use from one thread.

    A repeated batch has the same files, so it counts those that it has counted before.
    """

    def __init__(self, counts: StreamCounts, source: str) -> None:
        self._folders, self._place, self._run = counts.folders, f"{counts.place}/{source}", counts.run_key
        self._batches = dict[str, str]()  # by the digest of a file
        self._left = dict[str, set[str]]()  # by batch: its files that some query may still read
        self._passed = dict[str, set[Hashable]]()  # by the digest of a file: the queries that have read it
        self._current = dict[Hashable, tuple[str, set[str]]]()  # by query: its batch, and all files of that
        self._load(set(counts.runs(source)))

    def new(self, files: Iterable[str], batch: str) -> set[str]:
        """Those of the files that no other batch of this run has counted."""
        return {each for each in files if self._batches.get(_digest(each), batch) == batch}

    def keep(self, reader: Hashable, batch: str, files: Iterable[str], counted: Iterable[str]) -> None:
        """Store the files of a batch of a query, and those of them that it has counted."""
        before, passed = self._current.get(reader, (batch, set[str]()))
        for each in passed if before != batch else ():  # Spark begins a batch when the one before has ended
            self._passed.setdefault(each, set()).add(reader)
        self._current[reader] = batch, {_digest(each) for each in files}
        own = sorted(_digest(each) for each in counted)
        if own:
            self._folders.make(f"{self._place}/{batch}")
        for part in range(0, len(own), _PART):
            text = json.dumps({"run": self._run, "files": own[part : part + _PART]})
            self._folders.replace(f"{self._place}/{batch}/{part}", text)
        self._add(batch, own)

    def forget_read(self, readers: AbstractSet[Hashable]) -> None:
        """Forget the files that all queries which read the source have read."""
        for each in [each for each, passed in self._passed.items() if readers <= passed]:
            del self._passed[each]
            if (its := self._batches.pop(each, None)) is not None:
                self._left[its].discard(each)
                if not self._left[its]:
                    self._delete(its)

    def forget(self) -> None:
        """Delete all that is stored of this run."""
        for batch in list(self._left):
            self._delete(batch)

    def _add(self, batch: str, digests: Iterable[str]) -> None:
        for each in digests:
            self._batches[each] = batch
            self._left.setdefault(batch, set()).add(each)

    def _delete(self, batch: str) -> None:
        del self._left[batch]
        self._folders.delete(f"{self._place}/{batch}")

    def _load(self, runs: AbstractSet[str]) -> None:
        for batch in self._folders.names(self._place) or ():
            url = f"{self._place}/{batch}"
            parts = [name for name in self._folders.names(url) or () if name.isdecimal()]
            found = [self._read(f"{url}/{part}") for part in parts]
            for run, files in found:
                if run == self._run:
                    self._add(batch, files)
            if found and not {run for run, _ in found} & {self._run, *runs}:
                self._folders.delete(url)

    def _read(self, url: str) -> tuple[str, list[str]]:
        try:
            found = json.loads(self._folders.read(url) or "{}")
            return str(found["run"]), [str(each) for each in found["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ConnectorError(f"'{url}' is damaged; restore or delete it") from error


def _digest(file: str) -> str:
    return hashlib.sha256(file.encode()).hexdigest()[:24]

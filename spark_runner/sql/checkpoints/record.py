"""`orchestrator.json`: what the checkpoint beside it counts."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from spark_runner.connectors.errors import ConnectorError

RECORD = "orchestrator.json"
ALL_TABLES = "*"
_MOST_JOBS = 100  # that a record keeps
_MOST_ROWS = 10**9  # of a micro-batch
_MOST_IDENTITIES = 3_000  # likewise, of at most 272 characters for topics: a record is read up to 1 MiB


class DamagedRecord(ConnectorError):
    """The record of a checkpoint cannot be read, so the progress of the checkpoint is unknown."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"'{url}/{RECORD}' is damaged: {why}; submit the job with --fresh to read all data again, or"
            " restore the file"
        )


@dataclass(frozen=True)
class Record:
    """The contents of the file."""

    fingerprint: str  # of the tables, views and the query
    stream: str  # the identity of all batches that the folder counts
    run_key: str = ""  # of the job that has begun it anew; empty if it began because there was none
    positions: Mapping[str, str] = field(default_factory=dict)  # by table in lower case, * = all
    targets: Sequence[str] = ()  # of the INSERTs of a statement set; empty for one INSERT
    earlier: Sequence[str] = ()  # the last jobs that have begun it anew before that one: they continue
    identities: Sequence[str] = ()  # of the parts that the streams read, such as topics
    limit: int | None = None  # rows per micro-batch that the tuning has found; None: it has not changed it
    # Not in the file: the offsets of the last micro-batch, by stream, as JSON; None: no checkpoint is known.
    reached: Sequence[str] | None = None

    @classmethod
    def of(cls, text: str, url: str) -> "Record":
        """Parse the file in the folder `url`; raises DamagedRecord."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DamagedRecord(url, "it is not JSON") from error
        if not isinstance(found, dict):
            raise DamagedRecord(url, "it is not a JSON object")
        for name in ("fingerprint", "stream"):
            if not (isinstance(found.get(name), str) and found[name]):
                raise DamagedRecord(url, f"it has no '{name}'")
        positions = found.get("positions", {})
        if not (isinstance(positions, dict) and all(isinstance(each, str) for each in positions.values())):
            raise DamagedRecord(url, "its 'positions' are not texts by table")
        earlier = found.get("earlier", [])
        if not (isinstance(earlier, list) and all(isinstance(each, str) for each in earlier)):
            raise DamagedRecord(url, "its 'earlier' are not keys of jobs")
        targets = found.get("targets", [])
        if not (isinstance(targets, list) and all(isinstance(each, str) for each in targets)):
            raise DamagedRecord(url, "its 'targets' are not names of tables")
        identities = found.get("identities", [])
        if not (isinstance(identities, list) and all(isinstance(each, str) for each in identities)):
            raise DamagedRecord(url, "its 'identities' are not texts")
        return cls(
            found["fingerprint"],
            found["stream"],
            str(found.get("run_key", "")),
            positions,
            tuple(targets),
            tuple(earlier),
            tuple(identities),
            _limit(found.get("limit")),
        )

    def text(self) -> str:
        """The contents of the file."""
        more = {
            "run_key": self.run_key,
            "positions": dict(self.positions),
            "targets": list(self.targets),
            "earlier": list(self.earlier)[-_MOST_JOBS:],
            "identities": list(self.identities)[:_MOST_IDENTITIES],
            "limit": self.limit,
        }
        kept = {name: value for name, value in more.items() if value}
        return json.dumps({"fingerprint": self.fingerprint, "stream": self.stream, **kept})

    def taken_over(self, fingerprint: str, targets: Sequence[str]) -> "Record":
        """The record for another query that continues.

        It keeps the targets of INSERTs that the set has no more: their rows so far are counted here alone.
        """
        kept = Counter(self.targets) | Counter(targets)
        return replace(self, fingerprint=fingerprint, targets=tuple(kept.elements()))

    def identified(self, identities: Iterable[str]) -> "Record":
        """The record with these identities, too; others stay, for a part that is gone may come back."""
        return replace(self, identities=tuple(sorted({*self.identities, *identities})))

    def jobs(self) -> list[str]:
        """The jobs that have begun it anew."""
        return [*self.earlier, self.run_key] if self.run_key else list(self.earlier)

    def position(self, table: str) -> str | None:
        """Where a table begins; None: at its start."""
        return self.positions.get(table.lower(), self.positions.get(ALL_TABLES))


def _limit(value: object) -> int | None:
    """A wrong limit is none: the tuning finds it again."""
    return value if type(value) is int and 1 <= value <= _MOST_ROWS else None

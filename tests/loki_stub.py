"""Handles a push as Loki does: accepts the valid entries, even if it rejects others."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.log_stub import Request, Said

_WINDOW_NS = 3600 * 10**9  # half of max_chunk_age
_MAX_LISTED = 10
_MOMENT_NS = 10**9


class LokiStore:
    """The rules of Loki 3 with its defaults: order, age, length, and dropped duplicates."""

    def __init__(self, *, max_line: int = 262_144) -> None:
        self.lines = list[tuple[dict[str, str], int, dict[str, Any]]]()
        self.copies = 0
        self._max_line = max_line
        self._newest = dict[frozenset[tuple[str, str]], int]()
        self._known = set[tuple[frozenset[tuple[str, str]], int, str]]()

    @property
    def ids(self) -> list[str]:
        return [line["event.id"] for _, _, line in self.lines]

    def check(self, request: Request) -> None:
        assert (request.method, request.path) == ("POST", "/loki/api/v1/push")
        assert request.headers["content-type"] == "application/json"
        body = json.loads(request.data)
        assert set(body) == {"streams"}
        assert body["streams"]
        names = [frozenset(each["stream"].items()) for each in body["streams"]]
        assert len(set(names)) == len(names)
        for each in body["streams"]:
            assert set(each) == {"stream", "values"}
            assert all(isinstance(value, str) and value for value in each["stream"].values())
            times = [int(time) for time, _ in each["values"]]
            assert all(isinstance(text, str) for value in each["values"] for text in value)
            assert times == sorted(times)

    def take(self, request: Request) -> Said:
        errors = list[str]()
        for each in json.loads(request.data)["streams"]:
            valid = [value for value in each["values"] if not self._invalid(value, errors)]
            self._append(each["stream"], valid, errors)
        if errors:
            return Said(400, "\n".join(errors[:_MAX_LISTED]).encode())
        return Said(204)

    def _invalid(self, value: list[str], errors: list[str]) -> bool:
        oldest = datetime.now(UTC) - timedelta(days=7)
        if int(value[0]) < oldest.timestamp() * 1e9:
            when = datetime.fromtimestamp(int(value[0]) // _MOMENT_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            errors.append(
                f"entry for stream '{{}}' has timestamp too old: {when}, "
                f"oldest acceptable timestamp is: {oldest:%Y-%m-%dT%H:%M:%SZ}"
            )
            return True
        if len(value[1].encode()) > self._max_line:
            errors.append(
                f"Max entry size '{self._max_line}' bytes exceeded for stream '{{}}' "
                f"while adding an entry with length '{len(value[1])}' bytes"
            )
            return True
        return False

    def _append(self, labels: dict[str, str], values: list[list[str]], errors: list[str]) -> None:
        stream, ignored = frozenset(labels.items()), 0
        for text_time, line in values:
            time, newest = int(text_time), self._newest.get(stream, 0)
            if time < newest - _WINDOW_NS:
                ignored += 1
                errors.append(
                    f"entry with timestamp {time} ignored, reason: 'entry too far behind, "
                    f"entry timestamp is: {time}, oldest acceptable timestamp is: {newest - _WINDOW_NS}',"
                )
            elif (stream, time, line) in self._known:
                self.copies += 1
            else:
                self._known.add((stream, time, line))
                self._newest[stream] = max(newest, time)
                self.lines.append((labels, time, json.loads(line)))
        if ignored:
            errors.append(f"user 'fake', total ignored: {ignored} out of {len(values)} for stream: {labels}")

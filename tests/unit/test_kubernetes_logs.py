"""Copies of pod logs grow without gaps or duplicates, whatever interrupts the copying."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from spark_runner.protocol.log_limit import limit_log
from spark_runner.runners.kubernetes import logs
from spark_runner.runners.kubernetes.api import KubernetesApi
from spark_runner.runners.kubernetes.logs import PodLogs
from spark_runner.runners.kubernetes.pod import RUN_LABEL, Pod

RUN = "a-run-1"


class Node:
    """Serves the log of one pod as the API does; `now` is the clock of both."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.written: list[tuple[float, bytes]] = []
        self.asked: list[int | None] = []
        self.has_ended = False
        self.logs = PodLogs(cast("KubernetesApi", self), "namespace", folder)
        monkeypatch.setattr("spark_runner.runners.kubernetes.logs.time.time", lambda: self.now)

    def pod_log(self, *_: object, tail_lines: int, since_seconds: int | None, **_more: object) -> bytes:
        self.asked.append(since_seconds)
        since = 0.0 if since_seconds is None else self.now - since_seconds
        found = [b"%015.9f %s" % (at, text) for at, text in self.written if at >= since]
        return b"".join(found[-tail_lines:])

    def write(self, *texts: str, seconds: float = 0.001) -> None:
        for text in texts:
            self.now += seconds
            self.written.append((self.now, text.encode()))

    def copied(self, executor: str = "") -> str:
        role = {"spark-role": "executor", "spark-exec-id": executor} if executor else {"spark-role": "driver"}
        document: dict[str, Any] = {
            "metadata": {
                "name": "pod",
                "uid": "uid",
                "labels": {RUN_LABEL: RUN, "orchestrator-incarnation": "one", **role},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"containers": [{"name": "main"}]},
            "status": {"phase": "Succeeded" if self.has_ended else "Running"},
        }
        self.logs.save([Pod.of(document)])
        found = [log for log in self.logs.files(RUN) if log.executor == executor]
        return "".join(log.path.read_text("utf-8") for log in found)

    @property
    def folder(self) -> Path:
        return self.logs.files(RUN)[-1].path.parent


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_a_copy_without_news_keeps_its_time_so_that_readers_know_that_it_is_quiet(node: Node) -> None:
    node.write("one\n")
    node.copied()
    copy = node.folder / "stdout.log"
    os.utime(copy, (500, 500))
    node.now += 1
    assert node.copied() == "one\n"
    assert copy.stat().st_mtime == 500
    node.write("two\n")
    node.copied()
    assert copy.stat().st_mtime > 500


def test_new_lines_are_added_and_only_they_are_requested(node: Node) -> None:
    node.write("one\n", "two\n")
    assert node.copied() == "one\ntwo\n"
    inode = (node.folder / "stdout.log").stat().st_ino
    node.write("two\n", "three\n")
    assert node.copied() == "one\ntwo\ntwo\nthree\n"
    node.now += 100
    assert node.copied() == "one\ntwo\ntwo\nthree\n"
    node.write("four\n", seconds=200)
    assert node.copied() == "one\ntwo\ntwo\nthree\nfour\n"
    assert (node.folder / "stdout.log").stat().st_ino == inode
    assert node.asked == [None, 6, 105, 205]


def test_a_line_without_its_end_waits_for_it_or_for_the_end_of_the_pod(node: Node) -> None:
    node.write("one\n", "half")
    assert node.copied() == "one\n"
    node.written[-1] = (node.written[-1][0], b"half and more\n")
    node.write("last")
    assert node.copied() == "one\nhalf and more\n"
    node.has_ended = True
    assert node.copied() == "one\nhalf and more\nlast"
    assert node.copied() == "one\nhalf and more\nlast"


def test_a_copy_without_a_stored_position_is_repeated_without_duplicates(node: Node) -> None:
    node.write("one\n")
    node.copied()
    noted = (node.folder / "position.json").read_bytes()
    node.write("two\n")
    node.copied()
    (node.folder / "position.json").write_bytes(noted)  # as after a kill -9 in between
    node.write("three\n")
    assert node.copied() == "one\ntwo\nthree\n"
    (node.folder / "position.json").write_text("{damaged", "ascii")
    assert node.copied() == "one\ntwo\nthree\n"


def test_lines_that_the_node_has_rotated_away_are_not_copied_twice(node: Node) -> None:
    node.write("one\n", "two\n")
    node.copied()
    del node.written[:]
    node.write("three\n")
    assert node.copied() == "one\ntwo\nthree\n"


def test_after_a_clock_was_set_back_everything_is_asked_for_and_nothing_is_there_twice(node: Node) -> None:
    node.write("one\n")
    node.copied()
    position = json.loads((node.folder / "position.json").read_bytes())
    (node.folder / "position.json").write_text(json.dumps({**position, "asked": node.now + 3600}), "ascii")
    node.write("two\n")
    assert node.copied() == "one\ntwo\n"
    assert node.asked[-1] is None


def test_a_copy_that_grows_too_long_begins_anew_with_its_last_part_kept(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "limit_log", partial(limit_log, max_bytes=10))
    node.write("one\n", "two\n")
    assert node.copied() == "one\ntwo\n"
    node.write("three\n")
    assert node.copied() == "two\nthree\n"
    node.write("four\n")
    assert node.copied() == "two\nthree\nfour\n"


def test_executors_have_copies_of_their_own(node: Node) -> None:
    node.write("one\n")
    assert node.copied() == "one\n"
    assert node.copied(executor="3") == "one\n"
    assert [(log.incarnation, log.executor) for log in node.logs.files(RUN)] == [("one", ""), ("one", "3")]
    node.logs.remove(RUN)
    assert node.logs.files(RUN) == []

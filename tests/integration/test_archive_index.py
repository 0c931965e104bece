import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch

from orchestrator.archive import elasticsearch
from orchestrator.archive.archive import PausingArchive
from orchestrator.archive.base import ArchiveError, DocumentRefused
from orchestrator.archive.elasticsearch import ElasticsearchArchive
from orchestrator.handlers.actions import Keep, Remove
from queues.embedded.ports import free_ports
from queues.queue_set import QueueSet
from tests.archive_support import follow, held, put_finished, queue_set
from tests.integration.test_archive import crash_at
from tests.queues_support import open_session


@pytest.fixture
def queues(zookeeper_hosts: str, zookeeper_root: str) -> Iterator[QueueSet]:
    with open_session(zookeeper_hosts) as session:
        yield queue_set(session, zookeeper_root)


@dataclass(frozen=True)
class Index:
    """An index of one test, as a reader sees it."""

    url: str
    name: str
    client: Elasticsearch

    def found(self, **query: Any) -> list[dict[str, Any]]:
        self.client.indices.refresh(index=self.name)
        hits = self.client.search(index=self.name, query=query or {"match_all": {}})["hits"]["hits"]
        return [{"_id": hit["_id"], **hit["_source"]} for hit in hits]

    def block_writes(self, *, block: bool) -> None:
        self.client.indices.put_settings(index=self.name, settings={"index.blocks.write": block})


@pytest.fixture
def index(elasticsearch_url: str, elasticsearch_index: str) -> Iterator[Index]:
    with Elasticsearch(elasticsearch_url) as client:
        yield Index(elasticsearch_url, elasticsearch_index, client)


@contextmanager
def opened(url: str, index: str, **files: Path) -> Iterator[ElasticsearchArchive]:
    archive = ElasticsearchArchive(url, index, **files)
    yield archive
    archive.close()


@pytest.fixture
def archive(index: Index) -> Iterator[ElasticsearchArchive]:
    with opened(index.url, index.name) as archive:
        yield archive


# ---------------------------------------------------------------------- life of a job
def test_a_job_is_archived_under_its_run_key_without_a_mark_then_removed(
    queues: QueueSet, archive: ElasticsearchArchive, index: Index
) -> None:
    job_id = put_finished(queues)
    run_key = queues.get(job_id).run_key
    (removed,) = follow(held(queues, job_id, archive))
    assert isinstance(removed, Remove)
    assert not queues.contains(job_id)
    (document,) = index.found(term={"id": job_id})
    assert document["_id"].startswith(f"{run_key}-")
    assert (document["run_key"], document["status"]) == (run_key, "SUCCESS")
    assert document["definition"] == {"name": "report", "python": "pass"}
    assert [attempt["attempt"] for attempt in document["attempts"]] == [1, 2]


def test_jobs_are_found_by_what_people_ask_for(
    queues: QueueSet, archive: ElasticsearchArchive, index: Index
) -> None:
    follow(held(queues, put_finished(queues), archive))
    for query in (
        {"term": {"name": "report"}},
        {"term": {"status": "SUCCESS"}},
        {"range": {"archived": {"gte": "now-1h"}}},
    ):
        assert len(index.found(**query)) == 1
    assert index.found(term={"definition.name": "report"}) == []


def test_a_crash_before_the_removal_archives_nothing_twice(
    zookeeper_hosts: str, queues: QueueSet, archive: ElasticsearchArchive, index: Index
) -> None:
    job_id = put_finished(queues)
    crash_at("before removal", zookeeper_hosts, queues, job_id, index.url, index.name)
    before = index.found()
    assert [document["id"] for document in before] == [job_id]
    assert queues.contains(job_id)
    follow(held(queues, job_id, archive))
    assert not queues.contains(job_id)
    assert index.found() == before


def test_a_document_that_is_there_is_not_replaced(archive: ElasticsearchArchive, index: Index) -> None:
    archive.write({"run_key": "key", "id": "job", "status": "SUCCESS"})
    archive.write({"run_key": "key", "id": "job", "status": "KILL"})
    (document,) = index.found()
    assert document["status"] == "SUCCESS"


def test_workers_that_begin_at_once_make_one_index(index: Index) -> None:
    barrier, errors = threading.Barrier(6), list[Exception]()

    def write(number: int) -> None:
        with opened(index.url, index.name) as archive:
            barrier.wait(20)
            try:
                archive.write({"run_key": f"key-{number}", "id": "job"})
            except ArchiveError as error:
                errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(index.found()) == 6
    mapping = index.client.indices.get_mapping(index=index.name)[index.name]["mappings"]
    assert mapping["dynamic"] == "false"


def test_fields_of_jobs_that_contradict_each_other_are_all_taken(
    archive: ElasticsearchArchive, index: Index
) -> None:
    for number, value in enumerate(("text", 1, {"deep": [1, "two"]}, ["x" * 40_000], None)):
        archive.write(
            {
                "run_key": f"key-{number}",
                "id": "x" * 40_000,
                "started": "no time",
                "definition": {"variables": value},
                "attempts": [{"outcome": value}],
                "new": value,
            }
        )
    assert len(index.found()) == 5


# ---------------------------------------------------------------------- a failing server
def test_a_job_stays_while_the_index_is_closed_for_writing(
    queues: QueueSet, archive: ElasticsearchArchive, index: Index
) -> None:
    archive.write({"run_key": "first", "id": "first"})
    index.block_writes(block=True)
    job_id, now = put_finished(queues), [0.0]
    pausing = PausingArchive(archive, clock=lambda: now[0])
    assert follow(held(queues, job_id, pausing)) == [Keep(delay=60.0)]
    assert queues.contains(job_id)
    index.block_writes(block=False)
    now[0] += 60
    queues.requeue(job_id)
    follow(held(queues, job_id, pausing))
    assert not queues.contains(job_id)
    assert len(index.found(term={"id": job_id})) == 1


def test_a_job_stays_while_no_server_is_there(queues: QueueSet) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    job_id = put_finished(queues)
    with opened(f"http://127.0.0.1:{port}", "jobs") as archive:
        assert follow(held(queues, job_id, PausingArchive(archive))) == [Keep(delay=60.0)]
        with pytest.raises(ArchiveError, match="Connection refused"):
            archive.write({"run_key": "key", "id": "job"})
    assert queues.contains(job_id)


def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elasticsearch, "_REQUEST_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            opened(url, "jobs") as archive,
            pytest.raises(ArchiveError, match=f"index jobs at {url}: .*timed out"),
        ):
            archive.write({"run_key": "key", "id": "job"})


def test_a_document_that_cannot_be_mapped_is_refused_with_the_reason(archive: ElasticsearchArchive) -> None:
    with pytest.raises(
        DocumentRefused, match=r"job 'job' cannot be archived: index .*document_parsing_exception"
    ):
        archive.write({"run_key": "key", "id": "job", "attempt": "many"})
    archive.write({"run_key": "key", "id": "job", "attempt": 1})


# ---------------------------------------------------------------------- access
def test_the_key_of_the_file_is_sent(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("bXk6a2V5\n", "ascii")
    with socket.create_server(("127.0.0.1", 0)) as server:
        got = list[bytes]()

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                got.append(connection.recv(65536))
                connection.sendall(
                    b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                )

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with opened(url, "jobs", key_file=key) as archive, pytest.raises(ArchiveError):
            archive.write({"run_key": "key", "id": "job"})
        thread.join(20)
    assert b"authorization: ApiKey bXk6a2V5" in got[0].replace(b"Authorization", b"authorization")


@pytest.mark.parametrize("kind", ["key_file", "ca_file"])
def test_a_file_that_is_not_there_is_named_when_it_is_needed(tmp_path: Path, kind: str) -> None:
    failing = opened("https://127.0.0.1:1", "jobs", **{kind: tmp_path / "gone"})
    with failing as archive, pytest.raises(ArchiveError, match="gone"):
        archive.write({"run_key": "key", "id": "job"})

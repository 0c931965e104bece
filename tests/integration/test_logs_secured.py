"""Logs to an Elasticsearch with TLS and logins: keys with the rights of docs/logs.md, and others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.logs.errors import TargetRefuses
from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.reading.query import LogQuery
from orchestrator.logs.reading.reader import LogReader
from orchestrator.logs.record.redaction import REDACTOR
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.indices import daily_indices
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import LogTarget
from orchestrator.logs.shipping.targets import open_target
from orchestrator.logs.spool.writer import Spool
from tests.servers.elasticsearch_secured import SHIPPER, SecuredElasticsearch, secured_elasticsearch
from tests.waiting import wait_until

DELIVERED_S = 60
ALIAS = "secured-logs"
RIGHTS = {  # those that docs/logs.md names
    "cluster": ["manage_index_templates"],
    "indices": [
        {
            "names": [ALIAS, f"{ALIAS}-*"],
            "privileges": [
                "create_doc",
                "auto_configure",
                "view_index_metadata",
                "monitor",
                "read",
                "delete_index",
            ],
        }
    ],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SecuredElasticsearch]:
    with secured_elasticsearch(tmp_path, RIGHTS) as made:
        yield made


def settings_of(server: SecuredElasticsearch, key: Path, ca: str = "") -> LogSettings:
    return LogSettings(url=server.url, alias=ALIAS, key_file=key, ca_file=Path(ca or server.certificates.ca))


def target_of(settings: LogSettings) -> LogTarget:
    target = open_target(settings)
    assert target is not None
    return target


@pytest.mark.timeout(300)
def test_a_guarded_server_takes_logs_of_who_has_the_rights_and_tells_others_what_is_wrong(
    server: SecuredElasticsearch, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text(f"{SHIPPER}\n")

    # Another authority: reported at the first request, and not retried every moment.
    other = target_of(settings_of(server, key, server.certificates.other_ca))
    with pytest.raises(TargetRefuses, match=r"certificate verify failed.*logs\.ca_file"):
        other.prepare()
    other.close()

    # With an unknown key shipping pauses and records stay; with the right one in the same file they are sent.
    root = tmp_path / "logs" / "spool"
    wrong = tmp_path / "wrong"
    wrong.write_text("bm9ib2R5Om5vdGhpbmc=")
    spool, reported = Spool(root), list[str]()
    for number in range(10):
        spool.append(f"{ALIAS}-2026-11-22", b'{"@timestamp":"2026-11-22T10:00:00Z","message":"m%d"}' % number)
    shipper = Shipper(root, target_of(settings_of(server, wrong)), spool=spool, report=reported.append)
    shipper.start()
    wait_until(lambda: reported, DELIVERED_S, "the refusal is reported")
    assert "401" in reported[0]
    assert shipper.status()["paused"]
    assert not shipper.close(0.1)
    spool.close()

    settings = settings_of(server, key)
    drain = Shipper(root, target_of(settings))
    drain.adopt()
    drain.start()
    assert drain.close(DELIVERED_S), drain.status()
    server.ask("POST", f"/{ALIAS}/_refresh")
    reader = LogReader(settings, root, report=pytest.fail)
    assert {entry.text("message") for entry in reader.all(LogQuery())} == {f"m{n}" for n in range(10)}
    indices = daily_indices(settings)
    (index,) = indices.older_than(1) or indices.all()
    indices.remove(index)
    assert indices.all() == []

    # Text that was read as a key is never logged.
    assert key.read_text().strip() not in REDACTOR.mask(f"the key is {key.read_text()}")


@pytest.mark.timeout(300)
def test_a_worker_reports_at_its_start_what_is_wrong_and_continues(tmp_path: Path) -> None:
    settings = LogSettings(url="https://localhost:9", alias=ALIAS, key_file=tmp_path / "no-key")
    with LogPipeline(settings, tmp_path / "logs", "test") as pipeline:
        assert "no-key" in pipeline.trouble
        assert pipeline.spool is not None

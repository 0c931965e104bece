"""Log servers that are away, hang or are wrong: programs continue, and their records arrive later."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from loguru import logger

from orchestrator.logs.pipeline import LogPipeline
from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping import pace
from orchestrator.logs.shipping import shipper as shipper_module
from orchestrator.logs.shipping.shipper import Shipper
from orchestrator.logs.shipping.target import ShipperOptions
from orchestrator.logs.spool.folder import folders_in
from orchestrator.logs.spool.limits import SpoolLimits
from orchestrator.logs.spool.reader import SpoolReader
from orchestrator.logs.spool.segments import segments_in
from queues.embedded.ports import free_ports
from tests.log_index import LogIndex
from tests.log_proxy import Asked, LogProxy, Said
from tests.log_support import KIB, QUICK, document, drain, opened, read_records
from tests.waiting import wait_until

ARRIVE_S = 60
CLOSE_S = 5.0  # the time of a program for its logs at its end
QUICK_END = ShipperOptions(flush_seconds=0.2)
STOP_S = 2.0  # for threads in the middle of a request, on a loaded machine


@pytest.fixture
def quick_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(pace, "_LONGEST_DELAY_SECONDS", 0.2)


@pytest.fixture
def short_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipper_module, "ShipperOptions", lambda: QUICK_END)


def test_after_an_hour_without_a_server_all_arrives_once_and_without_a_stampede(
    log_index: LogIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_LONGEST_DELAY_SECONDS", 1.0)
    root, limits = tmp_path / "spool", SpoolLimits(256 * KIB * KIB, 256 * KIB, 0.02)
    options = ShipperOptions(max_actions=500, max_seconds=0.1, adopt_seconds=0.2, status_seconds=0.1)
    with (
        LogProxy(log_index.url) as proxy,
        opened(root, limits) as spool,
        opened(root, limits) as gone,  # of a process that ends in the meantime
    ):
        shipper = Shipper(root, log_index.target(proxy.url), spool=spool, options=options)
        shipper.start()
        for number in range(1_000):
            assert spool.append(log_index.day(), document(number, "x" * 100))
        wait_until(lambda: shipper.counts.created >= 1_000, ARRIVE_S, "the first arrive")
        proxy.away, since = True, time.monotonic()
        for number in range(1_000, 10_000):
            assert spool.append(log_index.day(number % 5 + 1), document(number, "x" * 100))
            assert gone.append(log_index.day(1), document(100_000 + number, "x" * 100))
        gone.close()
        wait_until(lambda: shipper.status()["trouble"], ARRIVE_S, "it is reported")
        wait_until(
            lambda: any(each.is_compressed for each in segments_in(gone.folder.path)), ARRIVE_S, "sealed"
        )
        away_s, refused = time.monotonic() - since, proxy.refused
        # Each with a delay of up to a second, one at a time.
        assert refused <= 10 + 10 * away_s
        proxy.most_at_once, before = 0, len(proxy.bulks)
        proxy.away = False
        wait_until(lambda: shipper.counts.created >= 19_000, ARRIVE_S, "all arrives")
        assert shipper.close(20)
        assert proxy.most_at_once <= options.in_flight
        assert len(proxy.bulks) - before <= 2 * 18_000 / options.max_actions
        assert shipper.counts.dead == shipper.counts.retried == 0
    assert log_index.numbers() == [*range(10_000), *range(101_000, 110_000)]


@pytest.mark.usefixtures("short_flush")
def test_a_server_that_never_was_there_costs_the_program_its_flush_and_nothing_else(
    log_index: LogIndex, tmp_path: Path
) -> None:
    (port,) = free_ports("127.0.0.1", 1)
    pipeline = LogPipeline(LogSettings(url=f"http://127.0.0.1:{port}"), tmp_path, "test")
    pipeline.open()
    spool = pipeline.spool
    assert spool is not None
    for number in range(100):
        assert spool.append(log_index.day(), document(number))
    wait_until(lambda: pipeline.trouble, ARRIVE_S, "it is reported")
    assert str(port) in pipeline.trouble
    since = time.monotonic()
    pipeline.close()
    assert time.monotonic() - since < QUICK_END.flush_seconds + STOP_S
    assert drain(tmp_path / "spool", log_index.target())
    assert log_index.numbers() == list(range(100))


def test_the_end_of_a_program_does_not_wait_for_a_server_that_hangs(
    log_index: LogIndex, tmp_path: Path
) -> None:
    with LogProxy(log_index.url) as proxy:
        proxy.rule = lambda asked: proxy.hang(asked) if asked.is_bulk else asked.forward()
        pipeline = LogPipeline(LogSettings(url=proxy.url, alias=log_index.alias), tmp_path, "test")
        pipeline.open()
        for number in range(100):
            logger.info("n{} is logged", number)
        assert proxy.hung.wait(ARRIVE_S)
        since = time.monotonic()
        pipeline.close()
        assert time.monotonic() - since < CLOSE_S + STOP_S
    assert drain(tmp_path / "spool", log_index.target())
    found = [each for each in log_index.documents() if each["message"].endswith("is logged")]
    assert sorted(int(each["message"].split()[0][1:]) for each in found) == list(range(100))


@pytest.mark.usefixtures("quick_pace")
def test_a_template_in_the_way_is_told_in_a_sentence_until_it_is_gone(
    log_index: LogIndex, tmp_path: Path
) -> None:
    rival = f"rival-{log_index.alias}"
    log_index.client.indices.put_index_template(
        name=rival, index_patterns=[f"{log_index.alias}-*"], priority=210, template={}
    )
    said = list[str]()
    try:
        with opened(tmp_path / "spool") as spool:
            shipper = Shipper(
                tmp_path / "spool", log_index.target(), spool=spool, options=QUICK, report=said.append
            )
            shipper.start()
            for number in range(20):
                assert spool.append(log_index.day(), document(number))
            wait_until(lambda: said, ARRIVE_S, "it is reported")
            assert "template" in said[0]
            assert rival in said[0]
            assert log_index.indices() == []
            log_index.client.indices.delete_index_template(name=rival)
            wait_until(lambda: shipper.counts.created == 20, ARRIVE_S, "they arrive")
            assert shipper.close()
    finally:
        log_index.client.options(ignore_status=404).indices.delete_index_template(name=rival)
    assert len(said) == 2
    assert log_index.numbers() == list(range(20))


# ---------------------------------------------------------------------- the wrong server
def _says(status: int, content_type: str, body: bytes) -> Callable[[Asked], Said]:
    return lambda _asked: Said(status, body, content_type)


@pytest.mark.parametrize(
    "rule",
    [
        _says(200, "text/html", b"<html>Welcome</html>"),
        _says(200, "application/json", b"{}"),
        _says(200, "application/json", b'{"index_templates": []}'),
        _says(200, "application/json", b'{"index_templates": [{"index_template": {"version": "x"}}]}'),
        _says(200, "application/json", b"[1"),
        _says(200, "application/octet-stream", b"\0\1"),
        _says(302, "text/html", b"elsewhere"),
        _says(400, "text/plain", b"what?"),
        _says(418, "text/plain", b"teapot"),
        _says(500, "text/html", b"<html>oops</html>"),
    ],
    ids=range(10),
)
@pytest.mark.usefixtures("quick_pace")
def test_another_server_at_the_address_gets_nothing_and_is_reported(
    tmp_path: Path, rule: Callable[[Asked], Said]
) -> None:
    with LogProxy("http://127.0.0.1:1", rule) as proxy, opened(tmp_path / "spool") as spool:
        target = LogIndex(proxy.url, "logs", None).target()  # type: ignore[arg-type]  # nothing is searched
        said = list[str]()
        shipper = Shipper(tmp_path / "spool", target, spool=spool, options=QUICK, report=said.append)
        shipper.start()
        for number in range(20):
            assert spool.append("logs-2026-01-01", document(number))
        wait_until(lambda: said, ARRIVE_S, "it is reported")
        assert "\n" not in said[0]
        assert not shipper.close(0)
        assert shipper.counts.requests == 0
    assert len(folders_in(tmp_path / "spool")) == 1


@pytest.mark.usefixtures("short_flush")
@pytest.mark.parametrize("text", [None, "no certificate"])
@pytest.mark.parametrize("name", ["key_file", "ca_file"])
def test_a_missing_or_wrong_file_is_reported_and_records_stay(
    tmp_path: Path, name: str, text: str | None
) -> None:
    file = tmp_path / "file"
    if text is not None:
        file.write_text(text)
    settings = LogSettings.model_validate({"url": "https://127.0.0.1:1", name: file})
    pipeline = LogPipeline(settings, tmp_path, "test")
    pipeline.open()
    logger.info("still here")
    wait_until(lambda: pipeline.trouble, ARRIVE_S, "it is reported")
    assert "https://127.0.0.1:1: " in pipeline.trouble
    assert "\n" not in pipeline.trouble
    assert (str(file) in pipeline.trouble) == (text is None)
    spool = pipeline.spool
    assert spool is not None
    assert spool.spooled >= 1
    pipeline.close()
    assert len(read_records(SpoolReader(spool.folder.path))) >= 1


@pytest.mark.usefixtures("short_flush")
def test_a_server_without_the_expected_tls_is_reported(log_index: LogIndex, tmp_path: Path) -> None:
    url = log_index.url.replace("http:", "https:")
    pipeline = LogPipeline(LogSettings(url=url, alias=log_index.alias), tmp_path, "test")
    pipeline.open()
    logger.info("n1 still here")
    wait_until(lambda: pipeline.trouble, ARRIVE_S, "it is reported")
    assert url in pipeline.trouble
    pipeline.close()
    assert drain(tmp_path / "spool", log_index.target())
    assert 1 in [int(each["message"][1]) for each in log_index.documents() if each["message"][0] == "n"]

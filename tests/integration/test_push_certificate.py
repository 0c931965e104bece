"""The channel of a push between machines: TLS with a certificate that the JRE of the driver makes."""

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_runner.push.control.budget import TaskId
from spark_runner.push.control.certificate import NoCertificate, make_certificate
from spark_runner.push.control.client import ControlClient, Endpoint
from spark_runner.push.control.messages import Orders
from spark_runner.push.control.server import ControlServer
from spark_runner.push.settings import Limits
from tests.waiting import wait_until

WAIT_S = 30


@pytest.fixture
def gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no public way to the JVM


@contextlib.contextmanager
def task(endpoint: Endpoint) -> Iterator[list[Orders]]:
    """The orders that a task receives."""
    orders = list[Orders]()
    client = ControlClient(
        endpoint,
        TaskId(0, 0),
        report=dict,
        follow=orders.append,
        extend=lambda _: None,
        failed=lambda error: pytest.fail(str(error)),
    )
    try:
        yield orders
    finally:
        client.close()


def test_a_task_trusts_the_certificate_of_its_driver_alone(
    gateway: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    context, certificate = make_certificate(gateway)
    assert list(tmp_path.iterdir()) == [], "no key is on the disk"
    _, other = make_certificate(gateway)
    assert other != certificate
    server = ControlServer(
        Limits(),
        host="127.0.0.1",
        token="t",  # noqa: S106 - of this server alone
        lease=10.0,
        is_exclusive=False,
        tls=context,
    )
    port = server.start()
    try:
        with task(Endpoint("127.0.0.1", port, "t", 10.0, certificate)) as orders:
            wait_until(lambda: orders, WAIT_S, "it has orders")
        with pytest.raises(OSError, match="certificate verify failed"):
            Endpoint("127.0.0.1", port, "t", 10.0, other).connected()
        with socket.create_connection(("127.0.0.1", port), WAIT_S) as plain:  # without TLS
            plain.sendall(b'{"type": "join", "token": "t", "partition": 1, "attempt": 0}\n')
            with contextlib.suppress(ConnectionError):
                assert b"orders" not in plain.recv(1000)
        assert [task for task, _ in server.take_ended()] == [TaskId(0, 0)]
        assert server.tasks() == {}
    finally:
        server.close()


def test_a_jre_without_keytool_is_named(tmp_path: Path) -> None:
    system = SimpleNamespace(getProperty=lambda _: str(tmp_path))
    broken = SimpleNamespace(jvm=SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system))))
    with pytest.raises(NoCertificate, match=f"{tmp_path}/bin/keytool made no certificate"):
        make_certificate(broken)

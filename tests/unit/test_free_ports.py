import socket

import pytest

from queues.embedded import ports
from queues.embedded.ports import free_ports, is_free


@pytest.fixture
def eight_ports(monkeypatch: pytest.MonkeyPatch) -> range:
    monkeypatch.setattr(ports, "LOWEST_PORT", lowest := free_ports("127.0.0.1", 1)[0] + 1)
    monkeypatch.setattr(ports, "HIGHEST_PORT", lowest + 7)
    return range(lowest, lowest + 8)


def test_a_port_is_given_once_though_no_server_listens_there_yet(eight_ports: range) -> None:
    given = [free_ports("127.0.0.1", 1)[0] for _ in range(6)]

    assert len(set(given)) == 6
    assert set(given) <= set(eight_ports)


def test_a_server_listens_at_a_port_that_was_given() -> None:
    (port,) = free_ports("127.0.0.1", 1)
    assert is_free("127.0.0.1", port)

    with socket.create_server(("127.0.0.1", port)):
        assert not is_free("127.0.0.1", port)


@pytest.mark.usefixtures("eight_ports")
def test_too_few_free_ports_are_an_error() -> None:
    with pytest.raises(OSError, match="no free port between"):
        free_ports("127.0.0.1", 9)

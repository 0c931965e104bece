"""Replies that arrive together are received together, and none of them waits for the next one."""

import socket
from collections.abc import Iterator

import pytest

from queues.session.client import Sockets, _BufferedSocket


@pytest.fixture
def pair() -> Iterator[tuple[_BufferedSocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with _BufferedSocket(ours) as buffered, theirs:
        yield buffered, theirs


def test_parts_of_what_has_arrived_need_no_further_receive(
    pair: tuple[_BufferedSocket, socket.socket],
) -> None:
    ours, theirs = pair
    theirs.sendall(b"sizebody|next")
    assert (ours.recv(4), ours.pending()) == (b"size", 9)
    theirs.close()
    assert (ours.recv(5), ours.recv(100), ours.pending()) == (b"body|", b"next", 0)
    assert ours.recv(4) == b""


def test_a_socket_with_pending_data_is_readable_at_once(
    pair: tuple[_BufferedSocket, socket.socket],
) -> None:
    (ours, theirs), sockets = pair, Sockets()
    assert sockets.select([ours], [], [], 0) == ([], [], [])
    theirs.sendall(b"12345678")
    assert sockets.select([ours], [], [], 10) == ([ours], [], [])
    assert ours.recv(4) == b"1234"
    assert sockets.select([ours], [ours], [], None) == ([ours], [ours], [])
    assert ours.recv(4) == b"5678"
    assert sockets.select([ours], [], [], 0) == ([], [], [])


def test_another_readable_socket_is_reported_beside_pending_data(
    pair: tuple[_BufferedSocket, socket.socket],
) -> None:
    # Else many replies would delay the requests that the other socket announces.
    (ours, theirs), sockets = pair, Sockets()
    theirs.sendall(b"12345678")
    ours.recv(4)
    wakes, waker = socket.socketpair()
    with wakes, waker:
        waker.sendall(b"\0")
        assert sockets.select([ours, wakes], [], [], None) == ([ours, wakes], [], [])

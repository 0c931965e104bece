import os
import socket
import threading
from collections.abc import Iterator

import pytest

from queues.session.client import can_tell_listeners, is_listener_of, is_ours_to_answer, is_server_of
from tests.another_user import STRANGER, as_another_user


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6], ids=["ipv4", "ipv4 on ipv6"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A listener of this process; those of Java are of the second kind."""
    with socket.socket(request.param) as made:
        if request.param == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(("127.0.0.1" if request.param == socket.AF_INET else "::ffff:127.0.0.1", 0))
        made.listen()
        yield made


def connected(listener: socket.socket) -> socket.socket:
    return socket.create_connection(("127.0.0.1", listener.getsockname()[1]), 5)


def test_a_listener_of_this_user_is_known_before_and_after_it_accepts(listener: socket.socket) -> None:
    assert is_listener_of(os.getpgrp(), "127.0.0.1", listener.getsockname()[1])
    assert not is_listener_of(1, "127.0.0.1", listener.getsockname()[1]), "the process is in another group"
    assert not is_listener_of(2**22, "127.0.0.1", listener.getsockname()[1]), "there is no such group"
    with connected(listener) as client:
        assert is_server_of(client, os.geteuid())
        with listener.accept()[0]:
            assert is_server_of(client, os.geteuid())


def test_a_client_of_this_user_is_recognized_and_a_closed_one_has_no_owner() -> None:
    """A closed socket has uid 0 in the table, so root could mistake it for its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with connected(listener), listener.accept()[0] as accepted:
            assert is_ours_to_answer(accepted)
        client = connected(listener)
        client.sendall(b"what comes before the end")
        client.close()
        with listener.accept()[0] as accepted:
            assert not is_ours_to_answer(accepted)


def test_a_listener_of_another_user_is_known_also_while_it_accepts_nothing() -> None:
    (here, there), (end, go_on) = os.pipe(), os.pipe()

    def listen() -> None:
        with socket.create_server(("127.0.0.1", 0)) as theirs:
            os.write(there, str(theirs.getsockname()[1]).encode())
            os.read(end, 1)
            with theirs.accept()[0]:
                os.write(there, b"x")
                os.read(end, 1)

    stranger = threading.Thread(target=as_another_user, args=(listen,))
    stranger.start()
    port = int(os.read(here, 10))
    try:
        assert not is_listener_of(os.getpgrp(), "127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            assert not is_server_of(client, os.geteuid())
            os.write(go_on, b"x")
            os.read(here, 1)
            assert not is_server_of(client, os.geteuid())
            assert is_server_of(client, STRANGER)
    finally:
        os.write(go_on, b"xx")
        stranger.join()
        for each in (here, there, end, go_on):
            os.close(each)


def test_where_none_listens_at_exactly_this_address_it_is_not_ours() -> None:
    with socket.create_server(("0.0.0.0", 0)) as everywhere:  # noqa: S104 - what another user could open
        port = everywhere.getsockname()[1]
        assert not is_listener_of(os.getpgrp(), "127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), 5) as client:
            assert not is_server_of(client, os.geteuid())


def test_listeners_are_shown_for_ipv4_addresses_only() -> None:
    assert can_tell_listeners("127.0.0.1")
    assert not can_tell_listeners("::1")
    assert not can_tell_listeners("localhost")

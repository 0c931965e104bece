"""ZooKeeper's four letter words: one question, one answer, the socket is closed."""

import socket
from contextlib import suppress

ANSWER_TIMEOUT_S = 2.0
"""A healthy server answers in milliseconds; one in a long fsync still makes it."""


def ask(address: str, word: str, timeout_s: float = ANSWER_TIMEOUT_S) -> str:
    """Send `word` (ruok, srvr, mntr, stat, cons) to `host:port` and return the whole answer.

    Raises OSError when the server cannot be reached or does not answer in time.
    """
    host, _, port = address.rpartition(":")
    chunks: list[bytes] = []
    with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
        connection.sendall(word.encode("ascii"))
        while chunk := connection.recv(65536):
            chunks.append(chunk)
    return b"".join(chunks).decode("utf-8", "replace")


def server_mode(address: str, timeout_s: float = ANSWER_TIMEOUT_S) -> str | None:
    """Return standalone, leader, follower or observer; None while the server does not serve requests."""
    with suppress(OSError):
        for line in ask(address, "srvr", timeout_s).splitlines():
            name, _, value = line.partition(": ")
            if name == "Mode":
                return value.strip()
    return None

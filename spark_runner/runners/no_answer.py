"""Explains to users why a server did not answer: the libraries' messages name objects and numbers."""

import re
import socket

from orchestrator.logs.http import plain_words

_REASONS = {
    re.compile(r"Connection refused", re.IGNORECASE): "no server listens there (connection refused)",
    re.compile(r"not known|Failed to resolve|nodename nor servname|No address associated"): (
        "its host name is unknown"
    ),
    re.compile(r"WRONG_VERSION_NUMBER|record layer failure"): "it does not speak TLS: is http meant?",
}
_UNTRUSTED = re.compile(r"certificate verify failed:? ?(?P<why>[^(]*)", re.IGNORECASE)


def no_answer(words: str) -> str:
    """The meaning of an error message of urllib3, a socket or TLS."""
    for pattern, reason in _REASONS.items():
        if pattern.search(words):
            return reason
    if untrusted := _UNTRUSTED.search(words):
        why = untrusted["why"].strip(" '\".")
        return f"its certificate is not trusted{f' ({why})' if why else ''}"
    return plain_words(words)


def refuses(host: str, port: str, seconds: float) -> str:
    """Why no server accepts a connection at this address; empty if one does."""
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except (OSError, ValueError) as error:
        return no_answer(str(error)) or type(error).__name__
    return ""

"""Why a server gave no answer, in words for its user: what the libraries say names objects and numbers."""

import re
import socket

from orchestrator.logs.http import plain_words

_REASONS = {
    re.compile(r"Connection refused", re.IGNORECASE): "nobody listens there (connection refused)",
    re.compile(r"not known|Failed to resolve|nodename nor servname|No address associated"): (
        "nobody knows its host name"
    ),
    re.compile(r"WRONG_VERSION_NUMBER|record layer failure"): "it does not speak TLS: is http meant?",
}
_UNTRUSTED = re.compile(r"certificate verify failed:? ?(?P<why>[^(]*)", re.IGNORECASE)


def no_answer(words: str) -> str:
    """What an error of urllib3, of the socket or of TLS means."""
    for pattern, reason in _REASONS.items():
        if pattern.search(words):
            return reason
    if untrusted := _UNTRUSTED.search(words):
        why = untrusted["why"].strip(" '\".")
        return f"its certificate is not trusted{f' ({why})' if why else ''}"
    return plain_words(words)


def refuses(host: str, port: str, seconds: float) -> str:
    """Why nobody takes a connection at this address; empty where somebody does."""
    try:
        socket.create_connection((host.strip("[]"), int(port)), seconds).close()
    except (OSError, ValueError) as error:
        return no_answer(str(error)) or type(error).__name__
    return ""

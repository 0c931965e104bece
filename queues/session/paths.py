"""Paths as they are sent."""

from queues.errors import InvalidName


def path_bytes(path: str) -> bytes:
    """The path as UTF-8; raises InvalidName for text that has no bytes.

    Whoever hands such text to kazoo ends its connection: the thread that sends would fail on it for ever.
    """
    try:
        return path.encode()
    except UnicodeEncodeError as error:
        message = f"{path!r} is no path: it has half of a surrogate pair in it"
        raise InvalidName(message) from error


def checked_path(path: str) -> str:
    """The path unchanged; raises InvalidName likewise."""
    path_bytes(path)
    return path

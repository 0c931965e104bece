"""Records that the target will never take, with the reasons: kept for people, and never in the way."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from orchestrator.logs.errors import DeadLettersFull
from orchestrator.logs.files import append, sync_folder
from orchestrator.logs.shipping.target import DeadLetter

_MAX_BYTES = 256 * 1024**2  # beyond, something else is wrong than some documents


class DeadLetters:
    """Appends to one file per process; a record counts as settled when it is on the disk there."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._path = folder, folder / f"{name}.jsonl"
        self._guard = threading.Lock()
        self.count = 0

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Put them aside durably; raises OSError, DeadLettersFull."""
        lines = [_line(letter) for letter in letters]
        with self._guard:
            is_new = not self._path.exists()
            if is_new:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                end = os.fstat(file).st_size
                if end > _MAX_BYTES:
                    raise DeadLettersFull(f"{self._path} holds {end:,} bytes of refused log records")
                append(file, b"".join(lines), end)
            finally:
                os.close(file)
            if is_new:
                sync_folder(self._folder)
            self.count += len(lines)


def _line(letter: DeadLetter) -> bytes:
    action, _, document = letter.record.partition(b"\n")
    head = json.dumps({"status": letter.status, "reason": letter.reason}).encode()
    return b'%b,"action":%b,"document":%b}\n' % (head[:-1], _json(action), _json(document.rstrip(b"\n")))


def _json(data: bytes) -> bytes:
    """As it is; what is no JSON, which may be why it was refused, as a string."""
    try:
        json.loads(data)
    except ValueError:
        return json.dumps(data.decode("utf-8", "replace")).encode()
    return data

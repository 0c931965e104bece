"""Dead letters: records that the target rejects permanently, kept in files with the reasons."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from orchestrator.logs.errors import DeadLettersFull
from orchestrator.logs.files import append, sync_folder
from orchestrator.logs.shipping.target import DeadLetter

_MAX_BYTES = 256 * 1024**2  # a larger file means a fault of the target or the template, not of documents


class DeadLetters:
    """Appends to one file per process. A record is settled when it is on disk there."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._path = folder, folder / f"{name}.jsonl"
        self._guard = threading.Lock()
        self.count = 0

    def write(self, letters: Sequence[DeadLetter]) -> None:
        """Store them durably; raises OSError, DeadLettersFull."""
        lines = [_line(letter) for letter in letters]
        with self._guard:
            is_new = not self._path.exists()
            if is_new:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                end = os.fstat(file).st_size
                if end > _MAX_BYTES:
                    raise DeadLettersFull(
                        f"{self._path} holds {end:,} bytes of refused log records: examine and remove it"
                    )
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
    """The text itself if it is JSON, else as a JSON string: that may be why the target refused it."""
    try:
        json.loads(data)
    except ValueError:
        return json.dumps(data.decode("utf-8", "replace")).encode()
    return data

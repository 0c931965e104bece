"""A file that is replaced as a whole."""

import os
import threading
from pathlib import Path


def replace_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Write it so that a reader sees the old or the new one; raises OSError. `mode` None: as of the umask."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    draft.write_bytes(content)
    if mode is not None:
        draft.chmod(mode)
    draft.replace(path)

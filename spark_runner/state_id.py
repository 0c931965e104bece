"""The identity of a state directory: workers of one host must share it to reach the same drivers."""

import os
import uuid
from pathlib import Path

from spark_runner.errors import SubmissionError

_NAME = "id"


def state_id(state_dir: Path) -> str:
    """The id of the directory, created if it is missing; raises SubmissionError."""
    path = state_dir / _NAME
    try:
        if not path.exists():
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = state_dir / f".{_NAME}-{uuid.uuid4().hex}"
            draft.write_text(uuid.uuid4().hex, encoding="utf-8")
            try:
                os.link(draft, path)  # atomic; of several that start at once one wins
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SubmissionError(f"the state directory {state_dir} cannot be used: {error}") from error

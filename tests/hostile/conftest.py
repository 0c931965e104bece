"""Fixtures of the hostile campaign."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.fork_server import ForkServer
from tests.acceptance.support import Shell, fork_server

__all__ = ["fork_server"]


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder that every user may read; those of pytest are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def shell(shelf: Path, process_mark: str, fork_server: ForkServer) -> Iterator[Shell]:
    """A shell whose state directory every user can reach; after the test no process of it may be left."""
    assert process_mark
    made = Shell(shelf, fork_server)
    yield made
    made.close()

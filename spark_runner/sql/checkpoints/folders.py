"""The file system that has checkpoints, and the one of this host."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from orchestrator.logs.files import FileLock, replace_file
from spark_runner.connectors.errors import ConnectorError

MAX_RECORD_BYTES = 1024 * 1024
_SCHEME = "file:"


class Folders(Protocol):
    """Folders and files, named by URLs. Each method raises ConnectorError with the reason."""

    def names(self, url: str) -> list[str] | None:
        """The entries of a folder; None if there is no such folder."""

    def is_link(self, url: str) -> bool:
        """Whether it is a symbolic link."""

    def read(self, url: str) -> str | None:
        """The text of a file; None without one."""

    def modified(self, url: str) -> float | None:
        """When it changed last, in seconds since the epoch; None if it is missing."""

    def make(self, url: str) -> None:
        """Make a folder, with those above it, unless it is there."""

    def replace(self, url: str, text: str) -> None:
        """Write a file; a reader, and a process that dies, leave the old or the new text."""

    def rename(self, url: str, new: str) -> None:
        """Rename a folder to a name that is free."""

    def delete(self, url: str) -> None:
        """Delete a folder with all in it; links in it are deleted, not followed. It may be missing."""

    def lock(self, url: str) -> contextlib.AbstractContextManager[bool]:
        """Lock a folder on this host: yields False while another process has it, True without locks."""


def local_path(url: str) -> Path | None:
    """The path of a `file:` URL; None for a URL of another file system."""
    if not url.lower().startswith(_SCHEME):
        return None
    rest = url[len(_SCHEME) :]
    return Path(f"/{rest[2:].partition('/')[2]}" if rest.startswith("//") else rest)


class LocalFolders:
    """The file system of this host, by `file:` URLs; standard library only."""

    def names(self, url: str) -> list[str] | None:
        """The entries of a folder."""
        with _explained(url):
            try:
                return sorted(entry.name for entry in _path(url).iterdir())
            except (FileNotFoundError, NotADirectoryError):
                return None

    def is_link(self, url: str) -> bool:
        """Whether it is a symbolic link."""
        with _explained(url):
            return _path(url).is_symlink()

    def read(self, url: str) -> str | None:
        """The text of a file; bytes that are not UTF-8 are replaced."""
        with _explained(url):
            try:
                with _path(url).open("rb") as file:
                    return file.read(MAX_RECORD_BYTES).decode("utf-8", errors="replace")
            except (FileNotFoundError, NotADirectoryError):
                return None

    def modified(self, url: str) -> float | None:
        """When it changed last."""
        with _explained(url):
            try:
                return _path(url).stat().st_mtime
            except (FileNotFoundError, NotADirectoryError):
                return None

    def make(self, url: str) -> None:
        """Make a folder."""
        with _explained(url):
            _path(url).mkdir(parents=True, exist_ok=True)

    def replace(self, url: str, text: str) -> None:
        """Write a file, durably."""
        with _explained(url):
            replace_file(_path(url), text.encode(), mode=None, durable=True)

    def rename(self, url: str, new: str) -> None:
        """Rename a folder."""
        with _explained(url):
            _path(url).rename(_path(new))

    def delete(self, url: str) -> None:
        """Delete a folder; two processes may delete it at the same time."""
        with _explained(url):
            while _path(url).is_dir():
                # An entry that another process has deleted ends one pass, and the next one finds less.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(_path(url))

    @contextlib.contextmanager
    def lock(self, url: str) -> Iterator[bool]:
        """Lock a folder that is still in its place."""
        lock = FileLock(_path(url), is_folder=True)
        try:
            yield _acquired(lock)
        finally:
            lock.release()


def _acquired(lock: FileLock) -> bool:
    try:
        # Between its opening and the lock another process may have put the folder away.
        return lock.acquire() and os.path.samestat(os.fstat(lock.fileno()), lock.path.stat())
    except FileNotFoundError:
        return False
    except OSError:
        return True  # this file system has no locks


def _path(url: str) -> Path:
    path = local_path(url)
    if path is None or not path.is_absolute():
        raise ConnectorError(f"'{url}' is no file: URL with an absolute path")
    return path


@contextlib.contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConnectorError(f"'{error.filename or url}': {error.strerror or error}") from error
    except ValueError as error:  # NUL in a path
        raise ConnectorError(f"'{url}': {error}") from error

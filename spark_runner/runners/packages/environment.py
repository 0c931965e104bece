"""An installed environment: the packages of a list of requirements for one Python, and their manifest."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from spark_runner.protocol.run_plan import PlannedPackages
from spark_runner.runners.packages.python import TargetPython

_KEY_CHARACTERS = 20
_FOLDER = re.compile(r"[0-9a-f]{20}-[0-9a-f]{8}")
_TAG = re.compile(r"^Tag: \S+-(?P<abi>[^-\s]+)-(?P<platform>[^-\s]+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a job needs: its requirements, the Python of its pool, and the version of Spark."""

    requirements: tuple[str, ...]
    python: str
    spark: str
    packed: bool = False  # an archive is needed too, for other hosts

    def key(self, python: TargetPython, settings: Sequence[str]) -> str:
        """The name of an environment that is equal to others of this key, with these settings of pip."""
        facts = [
            sorted(self.requirements),
            python.path,
            python.version,
            python.platform,
            self.spark,
            *settings,
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:_KEY_CHARACTERS]

    def __str__(self) -> str:
        count = len(self.requirements)
        return f"{count} package{'s' * (count != 1)}: {', '.join(self.requirements)}"


@dataclass(frozen=True, slots=True)
class Environment:
    """A complete environment. Its manifest is written last, so a folder without one is not used."""

    folder: Path
    python: str  # version
    platform: str
    compiled: bool  # some package has machine code for this Python and platform
    installed: tuple[str, ...]  # name==version
    size: int  # bytes
    contents: str  # the hash of the names and sizes of its files

    @property
    def archive(self) -> Path:
        """The zip of its folder, for other hosts."""
        return self.folder.with_name(f"{self.folder.name}.zip")

    @property
    def lock(self) -> Path:
        """The file that drivers lock while they use the folder; its time is that of the last use."""
        return self.folder.with_name(f"{self.folder.name}.lock")

    def planned(self, folder: str) -> PlannedPackages:
        """The part of a run plan, with the path of the folder where the driver runs."""
        return PlannedPackages(folder, self.python, self.platform, self.compiled)

    def is_intact(self) -> bool:
        """Whether its files have the names and sizes of the installation."""
        try:
            return contents_of(self.folder) == (self.contents, self.size)
        except OSError:
            return False

    def to_json(self) -> bytes:
        """The manifest."""
        return json.dumps({**asdict(self), "folder": self.folder.name}, indent=1).encode()

    @classmethod
    def read(cls, manifest: Path) -> "Environment | None":
        """The environment of a manifest; None where it is missing or damaged."""
        try:
            document = json.loads(manifest.read_bytes())
            name = str(document.pop("folder"))
            installed = tuple(map(str, document.pop("installed")))
            if not _FOLDER.fullmatch(name):
                return None
            found = cls(manifest.with_name(name), installed=installed, **document)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None
        return found if isinstance(found.size, int) and found.folder.is_dir() else None


def described(folder: Path, python: TargetPython) -> Environment:
    """The environment in a folder that pip has filled; raises OSError."""
    tags = [
        tag for path in folder.glob("*.dist-info/WHEEL") for tag in _TAG.finditer(path.read_text("utf-8"))
    ]
    contents, size = contents_of(folder)
    return Environment(
        folder,
        python.version,
        python.platform,
        compiled=any((tag["abi"], tag["platform"]) != ("none", "any") for tag in tags),
        installed=tuple(
            sorted(
                path.name.removesuffix(".dist-info").replace("-", "==") for path in folder.glob("*.dist-info")
            )
        ),
        size=size,
        contents=contents,
    )


def contents_of(folder: Path) -> tuple[str, int]:
    """The hash of the names and sizes of all files, and their bytes; raises OSError.

    Compiled modules are left out: Python may replace them.
    """
    whole, size = hashlib.sha256(), 0
    for path in sorted(_files(folder)):
        length = path.lstat().st_size
        size += length
        whole.update(f"{path.relative_to(folder)} {length}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest(), size


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_raise):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        yield from (Path(parent, name) for name in names)


def _raise(error: OSError) -> None:
    raise error

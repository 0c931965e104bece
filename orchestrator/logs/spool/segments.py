"""The files of a spool's folder: numbered segments, plain while they are written, then perhaps compressed."""

import errno
import gzip
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"(\d{8})\.seg(\.gz)?")
_GZIP = 16 + zlib.MAX_WBITS  # tells zlib what it reads
_PIECE_BYTES = 4 * 1024  # of a compressed segment: what damage may take with it
_LEVEL = 1  # of gzip: 5 to 10 times smaller at 100 MB/s; a better one costs more than the disk


@dataclass(frozen=True, slots=True, order=True)
class Segment:
    """One file; `number` orders those of a folder."""

    number: int
    path: Path

    @property
    def is_compressed(self) -> bool:
        """Whether it is complete, and was compressed."""
        return self.path.suffix == ".gz"

    def size(self) -> int:
        """Its bytes on the disk; 0 when it is gone."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self) -> bytes:
        """All of it, or what damage has left: not much more than the limit of a segment. Raises OSError."""
        data = self.path.read_bytes()
        return _decompressed(data) if self.is_compressed else data

    def remove(self) -> None:
        """Remove it, and what a crash while it was compressed has left of it; raises OSError."""
        self.path.unlink()
        if self.is_compressed:
            segment_path(self.path.parent, self.number).unlink(missing_ok=True)

    def compress(self) -> "Segment":
        """Compress it in its place; a crash leaves the one or the other, or both.

        Raises OSError; FileExistsError where somebody else does it at this moment, or has done it.
        """
        target = self.path.with_suffix(".seg.gz")
        draft = self.path.with_suffix(".tmp")
        file = draft.open("xb")
        try:
            with file:
                if target.exists():
                    raise FileExistsError(errno.EEXIST, "compressed already", str(target))
                file.write(gzip.compress(self.path.read_bytes(), _LEVEL))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(target)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        try:
            self.path.unlink()
        except FileNotFoundError:  # delivered or dropped meanwhile: it shall not come back
            target.unlink(missing_ok=True)
            raise
        return Segment(self.number, target)


def _decompressed(data: bytes) -> bytes:
    """What stands before the first damage; the crc of each record tells what of it is sound."""
    decompressor, found = zlib.decompressobj(_GZIP), list[bytes]()
    try:
        for start in range(0, len(data), _PIECE_BYTES):
            found.append(decompressor.decompress(data[start : start + _PIECE_BYTES]))
    except zlib.error:
        pass
    return b"".join(found)


def segment_path(folder: Path, number: int) -> Path:
    """Where a segment is written."""
    return folder / f"{number:08d}.seg"


def segments_in(folder: Path) -> list[Segment]:
    """The segments of a folder in their order; where a crash left one twice, the compressed one."""
    found = dict[int, Segment]()
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    for path in paths:  # `.seg` comes before `.seg.gz`
        if match := _NAME.fullmatch(path.name):
            number = int(match[1])
            found[number] = Segment(number, path)
    return [found[number] for number in sorted(found)]

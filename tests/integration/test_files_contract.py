"""The tests of a connector, for the formats of files that keep the types of columns."""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow publishes no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # likewise
import pytest
from pyarrow import orc

from tests.contract.kit import COLUMNS, Can
from tests.contract.suite import *  # noqa: F403 - the tests of the suite

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("amount", pa.float64())])


def read_json(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]


def write_json(rows: list[dict[str, Any]], file: Path) -> None:
    file.write_text("\n".join(map(json.dumps, rows)), "utf-8")


READERS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {
    "parquet": lambda file: list(pq.read_table(file).to_pylist()),
    "orc": lambda file: list(orc.read_table(str(file)).to_pylist()),
    "json": read_json,
}
WRITERS: dict[str, Callable[[list[dict[str, Any]], Path], None]] = {
    "parquet": lambda rows, file: pq.write_table(pa.Table.from_pylist(rows, SCHEMA), file),
    "orc": lambda rows, file: orc.write_table(pa.Table.from_pylist(rows, SCHEMA), str(file)),
    "json": write_json,
}


@dataclass
class FilesKit:
    """Folders of one format."""

    folder: Path
    format: str
    can: Can = Can.READ | Can.STREAM | Can.APPEND | Can.PROBE

    def create(self) -> str:
        made = self.folder / uuid.uuid4().hex
        made.mkdir()
        return str(made)

    def table(self, name: str, target: str, *, key: bool = False, deletes: bool = False) -> str:
        assert not key
        assert not deletes
        return f"CREATE TABLE {name} ({COLUMNS}) USING {self.format} OPTIONS (path '{target}');\n"

    def put(self, target: str, rows: Sequence[tuple[Any, ...]]) -> None:
        records = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        hidden = Path(target) / f"_{uuid.uuid4().hex}"
        WRITERS[self.format](records, hidden)
        hidden.rename(Path(target) / f"{hidden.name[1:]}.{self.format}")  # a stream reads whole files

    def rows(self, target: str) -> list[tuple[Any, ...]]:
        found = [each for file in Path(target).glob("part-*") for each in READERS[self.format](file)]
        return [tuple(each[name] for name in SCHEMA.names) for each in found]

    def unreachable(self, name: str) -> tuple[str, str]:
        return self.table(name, "nowhere://host/folder"), 'No FileSystem for scheme "nowhere"'

    def missing(self, name: str) -> tuple[str, str]:
        file = self.folder / "a file"
        file.touch()
        return self.table(name, str(file)), "is a file; a target is a directory"


@pytest.fixture(params=list(READERS))
def kit(request: pytest.FixtureRequest, tmp_path: Path) -> FilesKit:
    folder = tmp_path / "kit"
    folder.mkdir()
    return FilesKit(folder, request.param)

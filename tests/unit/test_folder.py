"""What Python may open where the folder of the definition is not: each in a process of its own."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from spark_runner.process import RUN_DIR_VARIABLE

REASON = f"relative paths mean the folder of the definition, which is not on {socket.gethostname()}"

PROGRAM = """
import os, shutil, sys, tempfile
from pathlib import Path
from types import SimpleNamespace
from spark_runner.folder import settle

settle(SimpleNamespace(), {directory!r})

def told(act):
    try:
        act()
    except OSError as error:
        print(type(error).__name__, error.filename, "relative paths" in str(error))
    else:
        print("done")

told(lambda: open("out.csv", "w"))
told(lambda: open(b"out.csv", "ab"))
told(lambda: Path("orders.csv").read_text())
told(lambda: os.open("out.csv", os.O_CREAT | os.O_WRONLY))
told(lambda: os.makedirs("out/x"))
told(lambda: open("brought").read())
told(lambda: open("brought", "a"))
told(lambda: tempfile.TemporaryDirectory().cleanup())
told(lambda: shutil.rmtree(tempfile.mkdtemp()))
told(lambda: open(os.path.abspath("out.csv"), "w").close())
"""


OUTSIDE = """
import os, sqlite3
from types import SimpleNamespace
from spark_runner.folder import settle

settle(SimpleNamespace(), "/no/such/folder")
print(os.system("echo lost > by-shell 2> /dev/null") != 0)
try:
    sqlite3.connect("by-library").execute("CREATE TABLE lost (a)")
except sqlite3.OperationalError:
    print(True)
"""


def run(directory: str, work: Path, text: str = PROGRAM, **environment: str) -> list[str]:
    (work / "brought").touch()
    program = [sys.executable, "-c", text.replace("{directory!r}", repr(directory))]
    return subprocess.run(
        program,
        cwd=work,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()


@pytest.mark.parametrize("directory", ["/no/such/folder", ""])
def test_python_neither_writes_beside_nor_misses_a_file_without_a_word_of_why(
    tmp_path: Path, directory: str
) -> None:
    refused = "FileNotFoundError {} True"
    assert run(directory, tmp_path) == [
        refused.format("out.csv"),
        refused.format("out.csv"),
        refused.format("orders.csv"),
        refused.format("out.csv"),
        refused.format("out"),
        "done",  # what the cluster has brought into the working directory
        refused.format("brought"),
        *["done"] * 3,
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"brought", "out.csv"}


def test_in_a_run_directory_nobody_writes_beside_whatever_opens_the_file(tmp_path: Path) -> None:
    assert run("", tmp_path, OUTSIDE, **{RUN_DIR_VARIABLE: str(tmp_path)}) == ["True", "True"]
    assert {path.name for path in tmp_path.iterdir()} <= {"brought", REASON}


def test_where_the_folder_is_python_works_in_it(tmp_path: Path) -> None:
    folder, work = tmp_path / "folder", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    (folder / "orders.csv").touch()
    (folder / "brought").touch()
    assert set(run(str(folder), work)) == {"done"}
    assert {path.name for path in folder.iterdir()} == {"orders.csv", "brought", "out.csv", "out"}

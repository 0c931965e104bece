"""Ctrl-C while the program loads: a library may catch the exception first."""

import subprocess
import sys
from pathlib import Path

import pytest

_LOADING = """
import os, signal, sys, time

class Library:
    def find_spec(self, name, path=None, target=None):
        if name in ("orchestrator.cli.connect", "orchestrator.compose"):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
            except KeyboardInterrupt:
                if {wraps}:
                    raise ValueError("building a model: KeyboardInterrupt") from None

sys.meta_path.insert(0, Library())
sys.argv = ["orchestrator", *{arguments}]
from orchestrator.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("wraps", "arguments"),
    [(True, ["job", "list"]), (True, ["run", "job.py"]), (False, ["run", "job.py"])],
    ids=["wrapped-list", "wrapped-run", "swallowed-run"],
)
def test_an_interrupt_that_a_library_converts_ends_the_command_quietly(
    tmp_path: Path, wraps: bool, arguments: list[str]
) -> None:
    (tmp_path / "job.py").write_text("pass\n", "utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", _LOADING.format(wraps=wraps, arguments=arguments)],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "ZOOKEEPER_HOSTS": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (130, ""), ended.stderr
    assert "rror" not in ended.stderr

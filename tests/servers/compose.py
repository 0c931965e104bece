"""The loader of the Compose specification, which checks a file by the schema and resolves it."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable

VERSION = "v2.16.2"
BUILD_TIMEOUT_S = 900  # 45 s of one processor
_PROGRAM = "github.com/compose-spec/compose-go/v2/cmd"


class InvalidCompose(Exception):
    """The file is not valid by the specification."""


def load_compose(file: Path) -> dict[str, Any]:
    """The file as `docker compose config` shows it; raises InvalidCompose."""
    program = cached(f"compose-go-{VERSION}", _build) / "cmd"
    done = subprocess.run([program, file], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise InvalidCompose(done.stderr)
    loaded: dict[str, Any] = yaml.safe_load(done.stdout)
    return loaded


def _build(folder: Path) -> None:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        unavailable("no check of compose files: Go is not installed")
    subprocess.run(
        ["nice", go, "install", f"{_PROGRAM}@{VERSION}"],
        check=True,
        env={**os.environ, "GOBIN": str(folder), "GOTOOLCHAIN": "auto", "CGO_ENABLED": "0"},
        timeout=BUILD_TIMEOUT_S,
        capture_output=True,
    )

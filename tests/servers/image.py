"""The image of deploy/Dockerfile, built by buildah without a daemon, on a Debian made from its packages."""

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 1200  # 120 s of one processor
SUITE = "bookworm"
PROGRAMS = {"buildah": "buildah", "mmdebstrap": "mmdebstrap"}
_CERTIFICATES = "/run/certificates.pem"


class Image:
    """A built image."""

    def __init__(self, name: str) -> None:
        self.name = name

    def config(self) -> dict[str, Any]:
        """What `docker inspect` calls Config."""
        found = json.loads(buildah("inspect", "--type", "image", self.name))
        config: dict[str, Any] = found["Docker"]["config"]
        return config

    @contextmanager
    def container(self, *options: str) -> Iterator[list[str]]:
        """Yield the start of a command that runs a program in a new container, as the user of the image."""
        made = buildah("from", self.name).strip()
        try:
            yield ["buildah", "run", "--isolation", "chroot", *options, made, "--"]
        finally:
            buildah("rm", made)


def buildah(*arguments: str) -> str:
    """The output of a command of buildah; fails the test with its errors."""
    done = subprocess.run(
        ["buildah", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "BUILDAH_ISOLATION": "chroot"},
    )
    assert done.returncode == 0, f"buildah {arguments[0]}: {done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def image() -> Iterator[Image]:
    """The image of this checkout; removed afterwards."""
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        unavailable(f"no image: root with {', '.join(PROGRAMS.values())} builds it, without a daemon")
    base, name = f"localhost/base-{uuid.uuid4()}", f"localhost/image-{uuid.uuid4()}"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="image-")))
        _import(cached(f"debian-{SUITE}", _debian) / "root.tar", base)
        stack.callback(buildah, "rmi", "--force", base)
        mounts = [f"--volume={option}" for option in _mounts(folder)]
        dockerfile = ["-f", str(ROOT / "deploy/Dockerfile"), "-t", name, str(ROOT)]
        # Downloads are kept on this host, by a mount, and so not in the image.
        options = [f"--build-arg=BASE={base}", "--build-arg=PIP_OPTIONS=--quiet", *mounts]
        buildah("build", "-q", "--format=docker", *options, *dockerfile)
        stack.callback(buildah, "rmi", "--force", name)
        yield Image(name)


def _debian(folder: Path) -> None:
    command = ["mmdebstrap", "--quiet", "--variant=minbase", SUITE, str(folder / "root.tar")]
    subprocess.run(command, check=True, timeout=BUILD_TIMEOUT_S, capture_output=True)


def _import(tar: Path, name: str) -> None:
    container = buildah("from", "scratch").strip()
    buildah("add", "-q", container, str(tar), "/")
    buildah("commit", "-q", "--rm", container, name)


def _mounts(folder: Path) -> list[str]:
    """What pip needs of this host during the build alone: its settings, certificates and downloads."""
    listed = subprocess.run(["pip3", "config", "list"], capture_output=True, text=True, check=True).stdout
    settings = dict(line.split(".", 1)[1].split("=", 1) for line in listed.splitlines() if "." in line)
    values = {name: value.strip("'\"") for name, value in settings.items()}
    mounts = []
    if certificates := values.get("cert"):
        values["cert"] = _CERTIFICATES
        mounts.append(f"{certificates}:{_CERTIFICATES}:ro")
    if Path(links := values.get("find-links", "")).is_dir() and links:
        mounts.append(f"{links}:{links}:ro")
    lines = [f"{name} = {value}" for name, value in values.items() if "\n" not in value]
    config = folder / "pip.conf"
    config.write_text("\n".join(["[global]", *lines, ""]), "utf-8")
    downloads = Path.home() / ".cache" / "pip"
    downloads.mkdir(parents=True, exist_ok=True)
    return [*mounts, f"{config}:/etc/pip.conf:ro", f"{downloads}:/root/.cache/pip"]

"""kube-apiserver and etcd, built once per machine: the first has no package, Debian's etcd is too old.

`python -m tests.servers.kubernetes.binary` builds them before the tests: about 5 minutes on 2 cores.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable

VERSION = "1.34.4"
LIBRARIES = "v0.34.4"
"""The modules in the repository of Kubernetes that are published separately with this version."""

BUILD_TIMEOUT_S = 1500  # 220 s on two idle processors
ETCD_VERSION = "3.6.4"
"""The version of this kube-apiserver. Debian's 3.4 refuses the watches of Spark."""

_ETCD_MODULE = "go.etcd.io/etcd/server/v3"
_ETCD_MAIN = """\
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""
# Unoptimized: halves the processor time of the build, and there are few requests.
_BUILD = ("build", "-gcflags=all=-N -l -dwarf=false", "-ldflags=-s -w")
_MODULE = "k8s.io/kubernetes"
_MAIN = """\
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
"""


def kube_apiserver() -> Path:
    """The program, built if it is missing; skips, or fails in CI, without Go."""
    return cached(f"kube-apiserver-{VERSION}", _build) / "kube-apiserver"


def etcd() -> Path:
    """The store of the API server, as `kube_apiserver`."""
    return cached(f"etcd-{ETCD_VERSION}", _build_etcd) / "etcd"


def _build(folder: Path) -> None:
    with _source(folder, _MAIN) as run:
        published = json.loads(run("mod", "download", "-json", f"{_MODULE}@v{VERSION}"))
        wanted = json.loads(run("mod", "edit", "-json", published["GoMod"]))
        staged = [replaced["Old"]["Path"] for replaced in wanted["Replace"]]
        replaces = [f"-replace={path}={path}@{LIBRARIES}" for path in staged]
        run("mod", "edit", f"-go={wanted['Go']}", f"-require={_MODULE}@v{VERSION}", *replaces)
        run("mod", "tidy")
        run(*_BUILD, "-o", str(folder / "kube-apiserver"), ".")


def _build_etcd(folder: Path) -> None:
    with _source(folder, _ETCD_MAIN) as run:
        run("mod", "edit", f"-require={_ETCD_MODULE}@v{ETCD_VERSION}")
        run("mod", "tidy")
        run(*_BUILD, "-o", str(folder / "etcd"), ".")


@contextmanager
def _source(folder: Path, main: str) -> Iterator[Callable[..., str]]:
    """Yield a function that runs `go` in a temporary module with this main file."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        unavailable("no Kubernetes: KUBERNETES_TEST_KUBECONFIG is not set, and Go is not installed")
    source = folder / "source"
    source.mkdir()
    (source / "main.go").write_text(main, "utf-8")

    def run(*arguments: str) -> str:
        environment = {
            **os.environ,
            "GOTOOLCHAIN": "auto",  # an older Go downloads the version that the module requires
            "GOFLAGS": "-mod=mod",
            "CGO_ENABLED": "0",
        }
        try:
            return subprocess.run(
                ["nice", go, *arguments],
                check=True,
                cwd=source,
                env=environment,
                timeout=BUILD_TIMEOUT_S,
                capture_output=True,
                text=True,
            ).stdout
        except subprocess.TimeoutExpired:
            unavailable(f"no Kubernetes: `go {arguments[0]}` did not end within {BUILD_TIMEOUT_S} s")
        except subprocess.CalledProcessError as error:
            unavailable(f"no Kubernetes: `go {' '.join(arguments)}` failed: {error.stderr[-2000:]}")

    run("mod", "init", "tests")
    yield run
    shutil.rmtree(source)


if __name__ == "__main__":
    try:
        print(etcd(), kube_apiserver())  # noqa: T201 - the output of the program
    except pytest.skip.Exception as reason:  # not in CI: the tests that need it are skipped too
        print(reason)  # noqa: T201 - likewise

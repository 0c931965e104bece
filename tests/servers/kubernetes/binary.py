"""The kube-apiserver of the tests, built once per machine: nobody offers the program alone as a package.

`python -m tests.servers.kubernetes.binary` builds it before the tests: about 4 minutes on 2 cores.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.cache import cached
from tests.servers.zookeeper import unavailable

VERSION = "1.34.4"
LIBRARIES = "v0.34.4"
"""The modules that live in the repository of Kubernetes, and are published beside it under this version."""

BUILD_TIMEOUT_S = 1500  # 220 s with two processors for itself
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
    """The program, built where it is not there yet; skips, or fails in CI, without a Go to build it."""
    return cached(f"kube-apiserver-{VERSION}", _build) / "kube-apiserver"


def _build(folder: Path) -> None:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        unavailable("no Kubernetes: KUBERNETES_TEST_KUBECONFIG is not set, and no Go is there to build it")
    source = folder / "source"
    source.mkdir()
    (source / "main.go").write_text(_MAIN, "utf-8")

    def run(*arguments: str) -> str:
        environment = {
            **os.environ,
            "GOTOOLCHAIN": "auto",  # an older Go fetches the one that the module asks for
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

    run("mod", "init", "kube-apiserver")
    published = json.loads(run("mod", "download", "-json", f"{_MODULE}@v{VERSION}"))
    wanted = json.loads(run("mod", "edit", "-json", published["GoMod"]))
    staged = [replaced["Old"]["Path"] for replaced in wanted["Replace"]]
    run(
        "mod",
        "edit",
        f"-go={wanted['Go']}",
        f"-require={_MODULE}@v{VERSION}",
        *(f"-replace={path}={path}@{LIBRARIES}" for path in staged),
    )
    run("mod", "tidy")
    run("build", "-ldflags", "-s -w", "-o", str(folder / "kube-apiserver"), ".")
    shutil.rmtree(source)


if __name__ == "__main__":
    print(kube_apiserver())  # noqa: T201 - for who runs it

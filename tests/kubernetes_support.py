"""Support for tests of the Kubernetes runner."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.compose import DRIVER_MAIN
from spark_runner.runners.base import SparkTarget
from spark_runner.runners.kubernetes.backend import KubernetesBackend
from spark_runner.runners.kubernetes.runner import KubernetesRunner
from spark_runner.runners.spark_submits import SparkSubmits
from tests.class_archive import archives
from tests.servers.kubernetes.fixtures import Kubernetes
from tests.servers.kubernetes.rules import DRIVER_RULES, WORKER_RULES

STAND_IN_POD = (sys.executable, str(Path(__file__).with_name("standin_pod_submit.py")))
IMAGE = "spark"
VANISH = """
def vanish():
    import ssl, urllib.request
    pod = "{pods}/orch-" + run + "-driver?gracePeriodSeconds=0"
    headers = {{"Authorization": "Bearer {token}"}}
    request = urllib.request.Request(pod, headers=headers, method="DELETE")
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile={ca!r}))
    hang()
"""


class KubernetesSite:
    """A namespace with the accounts that docs/backends.md asks for, and runners as workers have them."""

    def __init__(self, cluster: Kubernetes, namespace: str, folder: Path) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self._runners: list[KubernetesRunner] = []
        cluster.account(namespace, "spark", DRIVER_RULES)
        self.kubeconfig = cluster.kubeconfig(
            folder / "kubeconfig", namespace, cluster.account(namespace, "worker", WORKER_RULES)
        )

    def target(self, **options: str) -> SparkTarget:
        known = {"namespace": self.namespace, "service_account": "spark", "image": IMAGE}
        return SparkTarget(f"k8s://{self.cluster.api.address.url}", "cluster", known | options)

    def vanish(self) -> str:
        """`vanish` of `tests.scripted.functions` for a pod: the API deletes it at once."""
        address = self.cluster.api.address
        pods = f"{address.url}/api/v1/namespaces/{self.namespace}/pods"
        return VANISH.format(pods=pods, ca=str(address.ca), token=address.token)

    def check_nothing_is_left(self) -> None:
        """No object of any run is left; the code of today stays for later runs."""
        (code,) = self.cluster.names(self.namespace, "secrets")
        assert code.startswith("orch-driver-")
        self.cluster.wait_until_nothing_is_left(self.namespace, code)

    def runner(
        self,
        *,
        driver_main: Path = DRIVER_MAIN,
        spark_submit: Sequence[str] | None = STAND_IN_POD,
        stuck_seconds: float = 120,
    ) -> KubernetesRunner:
        """The runner of a worker; `spark_submit` None is the real one."""
        submits = SparkSubmits(
            self.folder / "state",
            spark_submit=spark_submit,
            quick_start=None if spark_submit else archives(),  # the lookup of the archive reads all of it
        )
        backend = KubernetesBackend(submits, driver_main=driver_main, stuck_seconds=stuck_seconds)
        runner = backend.runner_for(self.target())
        assert isinstance(runner, KubernetesRunner)
        self._runners.append(runner)
        return runner

    def close(self) -> None:
        """Stop the watches: else each would try for a minute to watch a deleted namespace."""
        for runner in self._runners:
            runner._watch._asked_at = -math.inf  # noqa: SLF001 - in a worker it ends with the process


@pytest.fixture
def kubernetes_site(
    kubernetes: Kubernetes, kubernetes_namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesSite]:
    """Kubernetes for one test, configured by KUBECONFIG as for a worker."""
    site = KubernetesSite(kubernetes, kubernetes_namespace, tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(site.kubeconfig))
    checkout = str(Path(__file__).parent.parent)  # the stand-in imports from here
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (checkout, os.environ.get("PYTHONPATH")))))
    yield site
    site.close()

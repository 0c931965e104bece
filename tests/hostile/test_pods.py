"""A hostile job in a pod of Kubernetes: what its program reaches with the credentials of the pod."""

import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.model.states import Status
from spark_runner.runners.kubernetes.launch import pod_name
from spark_runner.runners.kubernetes.pod import Pod
from tests.hostile.test_jobs import CHECKOUT, TOUCHES_ALL_NODES, WAIT_S
from tests.integration.test_driver_rights import STRONG, attempt_of, closed_settings, is_started, tree
from tests.jobs_support import Deployment, waits_for
from tests.kubernetes_support import KubernetesSite
from tests.servers.secured import Secured
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("process_mark")]

PLANTED = "a-variable-of-the-worker"
# The test kubelet gives a pod no file system of its own: its mounts are beside the plan.
SHOWS_AND_ASKS = """
import json, os, ssl, urllib.error, urllib.request
from pathlib import Path
command = Path("/proc/self/cmdline").read_text("utf-8")
plan = Path(command.split("\\0")[-2])
os.environ["ORCHESTRATOR_RUN_DIR"] = str(plan.parent)
mounted = [path for path in plan.parents[1].rglob("*") if path.is_file()]
(token,) = (path for path in mounted if path.name == "token")
trusted = ssl.create_default_context(cafile=str(token.with_name("ca.crt")))
address = "https://{{KUBERNETES_SERVICE_HOST}}:{{KUBERNETES_SERVICE_PORT}}".format(**os.environ)
def answer(method, path):
    headers = {{"Authorization": "Bearer " + token.read_text("utf-8"), "Content-Type": "application/json"}}
    data = b"{{}}" if method == "POST" else None
    request = urllib.request.Request(address + path, data, headers, method=method)
    try:
        return urllib.request.urlopen(request, context=trusted).status
    except urllib.error.HTTPError as refusal:
        return refusal.code
shown = {{
    "command": command,
    "environment": Path("/proc/self/environ").read_text("utf-8") + json.dumps(dict(os.environ)),
    "files": {{str(path): path.read_text("latin-1") for path in mounted}},
    "answers": {{" ".join(asked): answer(*asked) for asked in {asks!r}}},
}}
Path({shown!r} + "~").write_text(json.dumps(shown), "utf-8")
os.rename({shown!r} + "~", {shown!r})
"""


def test_a_hostile_pod_touches_its_own_attempt_alone_and_holds_and_shows_nothing_of_its_worker(
    secured: Secured, kubernetes_site: KubernetesSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, cluster, target = kubernetes_site, kubernetes_site.cluster, kubernetes_site.target()
    monkeypatch.setenv("PLANTED", PLANTED)
    shown, listed, found, go_on = (tmp_path / name for name in ("shown", "nodes", "found", "go-on"))
    spark = {"master": target.master, "kubernetes": {**target.options}}
    settings = closed_settings(secured, tmp_path, "digest")
    with cluster.namespace() as other, closing(Deployment(settings)) as deployment:
        cluster.api.create(f"/api/v1/namespaces/{other}/secrets", {"metadata": {"name": "key"}})
        may = [(way, f"/api/v1/namespaces/{site.namespace}/pods") for way in ("GET", "POST")]
        may_not = [
            ("GET", f"/api/v1/namespaces/{site.namespace}/secrets"),
            ("GET", f"/api/v1/namespaces/{other}/secrets"),
            ("GET", f"/api/v1/namespaces/{other}/secrets/key"),
            ("POST", f"/api/v1/namespaces/{other}/pods"),  # a pod that would mount the key
        ]
        program = (
            SHOWS_AND_ASKS.format(asks=may + may_not, shown=str(shown))
            + waits_for(listed)
            + TOUCHES_ALL_NODES.format(checkout=CHECKOUT, nodes=str(listed), found=str(found))
        )
        deployment.worker(slots=2, runner=site.runner())
        victim = deployment.submit(waits_for(go_on), name="victim", spark=spark)
        hostile = deployment.submit(program, name="hostile", spark=spark)
        for job_id in (victim, hostile):
            wait_until(partial(is_started, deployment, job_id), WAIT_S, f"{job_id} runs")
        own, session = attempt_of(deployment, hostile), deployment.queues.session
        wait_until(lambda: session.exists(own.alive), WAIT_S, "it shows life")
        wait_until(shown.exists, WAIT_S, "it has shown its environment")
        pod = cluster.pod(site.namespace, pod_name(own.run))
        assert pod is not None

        nodes = list(tree(session, settings.root))
        assert {own.path, attempt_of(deployment, victim).path} < {*nodes}
        tmp_path.joinpath("nodes~").write_text(json.dumps(nodes), "utf-8")
        tmp_path.joinpath("nodes~").rename(listed)
        ended = deployment.wait(hostile).job
        assert ended.status is Status.SUCCESS, ended.error
        go_on.touch()
        assert deployment.wait(victim).job.status is Status.SUCCESS
    touched = {path for path, can in json.loads(found.read_text("utf-8")).items() if can}
    assert touched == {own.path, own.alive}

    report: dict[str, Any] = json.loads(shown.read_text("utf-8"))
    kubeconfig = yaml.safe_load(site.kubeconfig.read_text("utf-8"))
    of_worker = [STRONG, "worker-password", PLANTED, kubeconfig["users"][0]["user"]["token"]]
    assert [secret for secret in [*of_worker, str(site.kubeconfig)] if secret in json.dumps(report)] == []

    given = {Path(path).name: text for path, text in report["files"].items()}
    of_run = [json.loads(given["plan.json"])["zookeeper"]["digest"]["password"], given["token"]]
    public = report["command"] + report["environment"] + json.dumps(pod)
    assert [secret for secret in of_worker + of_run if secret in public] == []
    secrets = {name for name in Pod.of(pod).secrets if not name.startswith("orch-driver-")}
    assert secrets == {f"orch-plan-{own.incarnation}"}, "the plan and our code, nothing else"

    allowed = [asked for asked, status in report["answers"].items() if status not in {401, 403}]
    assert allowed == [" ".join(asked) for asked in may]

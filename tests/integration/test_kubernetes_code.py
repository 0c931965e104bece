"""The code for pods, in secrets of a day: old secrets are removed, but never one that a pod needs."""

import uuid

import pytest

from spark_runner.runners.base import RunState, SubmitRequest
from spark_runner.runners.kubernetes import program
from spark_runner.runners.kubernetes import runner as runner_module
from spark_runner.runners.kubernetes.launch import pod_name
from spark_runner.runners.kubernetes.program import LAYOUT
from spark_runner.runners.kubernetes.runner import KubernetesRunner
from spark_runner.runners.spark_log import TO_STDERR
from tests.kubernetes_support import KubernetesSite
from tests.standin_pod_submit import PLAIN
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(1800), pytest.mark.usefixtures("process_mark")]

END_S = 60
DRIVER = "import time; time.sleep(600)"


class Versions:
    """Workers of several versions in one namespace, and the days on which they submit."""

    def __init__(self, site: KubernetesSite, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        self._patch = monkeypatch
        self._today = program._today()  # noqa: SLF001 - the day as workers count it

    def on_day(self, day: int) -> None:
        """Change to this day; 0 is today."""
        self._patch.setattr(program, "_today", lambda: self._today + day)

    def name(self, version: str, day: int) -> str:
        files = {"driver.zip": version, "driver_main.py": DRIVER, LAYOUT: TO_STDERR}
        name = program.code_secret({file: text.encode() for file, text in files.items()})["metadata"]["name"]
        return f"{name.rpartition('-')[0]}-{self._today + day}"

    def worker(self, version: str) -> KubernetesRunner:
        folder = self.site.folder / version
        folder.mkdir()
        (folder / "main.py").write_text(DRIVER, "utf-8")
        runner = self.site.runner(driver_main=folder / "main.py")
        (folder / f"driver-{version}.zip").write_bytes(version.encode())
        return runner

    def submit(self, runner: KubernetesRunner, version: str) -> str:
        made = self.site.folder / version / f"driver-{version}.zip"
        self._patch.setattr("spark_runner.runners.kubernetes.program.driver_zip", lambda *_: made)
        run = f"{uuid.uuid4()}-1"
        runner.submit(SubmitRequest(run, uuid.uuid4().hex, "name", {}, self.site.target(), {PLAIN: "true"}))
        return run

    def code(self) -> set[str]:
        names = self.site.cluster.names(self.site.namespace, "secrets")
        return {name for name in names if name.startswith("orch-driver-")}

    def wait_pod(self, run: str) -> None:
        wait_until(
            lambda: self.site.cluster.pod(self.site.namespace, pod_name(run)), END_S, "the pod is there"
        )


@pytest.fixture
def versions(kubernetes_site: KubernetesSite, monkeypatch: pytest.MonkeyPatch) -> Versions:
    return Versions(kubernetes_site, monkeypatch)


def end(runner: KubernetesRunner, run: str) -> None:
    runner.kill(run, grace_seconds=1)
    runner.cleanup(run)


def test_code_of_past_days_goes_with_the_next_run_but_not_while_a_pod_mounts_it(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = versions.worker("first"), versions.worker("second")
    versions.on_day(-3)
    ended, goes_on = versions.submit(first, "first"), versions.submit(second, "second")
    for run in (ended, goes_on):
        versions.wait_pod(run)
    versions.on_day(0)
    today = versions.submit(first, "first")
    versions.wait_pod(today)
    end(first, ended)
    assert versions.code() == {
        versions.name("second", -3),
        versions.name("first", 0),
    }, "what a pod of another version mounts stays, and today's"
    assert second.find(goes_on)[0].state is RunState.RUNNING

    end(second, goes_on)
    assert versions.code() == {versions.name("first", 0)}, "another worker's sweep"
    versions.on_day(2)
    end(first, today)
    assert versions.code() == {versions.name("first", 0)}, "no more than one sweep in an hour"
    monkeypatch.setattr(runner_module, "_SWEEP_SECONDS", 0)
    first.cleanup(today)
    assert versions.code() == set()


def test_a_secret_that_a_worker_with_another_clock_has_just_made_stays(versions: Versions) -> None:
    ahead, behind = versions.worker("ahead"), versions.worker("behind")
    versions.on_day(1)
    runs = [versions.submit(ahead, "ahead")]
    versions.on_day(0)
    runs.append(versions.submit(behind, "behind"))
    for run in runs:
        versions.wait_pod(run)
    end(behind, runs[1])
    end(ahead, runs[0])
    assert versions.code() == {versions.name("ahead", 1), versions.name("behind", 0)}


def test_no_secret_of_another_application_is_touched(versions: Versions) -> None:
    api, path = versions.site.cluster.api, f"/api/v1/namespaces/{versions.site.namespace}/secrets"
    api.create(path, {"metadata": {"name": "of-another-application"}})
    api.create(path, {"metadata": {"name": "with-labels", "labels": {program.CODE_LABEL: "strange"}}})
    worker = versions.worker("any")
    run = versions.submit(worker, "any")
    versions.wait_pod(run)
    versions.on_day(5)
    end(worker, run)
    assert versions.site.cluster.names(versions.site.namespace, "secrets") == {
        "of-another-application",
        "with-labels",
    }


def test_the_names_of_code_fit_into_labels() -> None:
    assert len(program.code_secret({"any": b"thing"})["metadata"]["name"]) < 64

"""One pod on this host: from its binding to its last status, in a thread of its own."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import psutil
import urllib3

from queues.model.codec import timestamp
from tests.servers.kubernetes.api import Api, ApiError, Document
from tests.servers.kubernetes.container import POD_MARK, program
from tests.servers.kubernetes.container_log import keep_log
from tests.servers.kubernetes.volumes import NotThereYet, PodFiles

T = TypeVar("T")

LOOK_S = 0.05
RETRY_S = 0.2
LOG_S = 10
ABSENT_IMAGE = "absent"
"""An image with this prefix cannot be pulled."""


@dataclass(frozen=True)
class Fate:
    """An external event for a pod, with the texts of its final status."""

    container_reason: str = ""
    pod_reason: str = ""
    message: str = ""
    silent: bool = False  # the node is lost: no status is written


class PodThread(threading.Thread):
    """Runs the container of one pod; `end` and `meet` control it from outside."""

    def __init__(self, api: Api, pod: Document, folder: Path, pod_ip: str) -> None:
        super().__init__(name=f"pod {pod['metadata']['name']}", daemon=True)
        self.log = folder / "log"
        self.deleted = False
        self._api = api
        self._pod = pod
        self._folder = folder
        self._pod_ip = pod_ip
        self._path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._uid: str = pod["metadata"]["uid"]
        self._started_at = timestamp()
        self._end_asked = threading.Event()
        self._term_sent = False
        self._kill_at: float | None = None
        self._fate: Fate | None = None
        self._no_api = threading.Event()

    def end(self, grace_seconds: float, *, deleted: bool = False) -> None:
        """TERM now and KILL after the grace; `deleted`: confirm the end, which deletes the pod."""
        kill_at = time.monotonic() + grace_seconds
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)
        self.deleted = self.deleted or deleted
        self._end_asked.set()
        if deleted and not self.is_alive():
            self._forget()

    def meet(self, fate: Fate) -> None:
        """KILL now, for the reason of the fate."""
        self._fate = fate
        self.end(0)

    def abandon(self) -> None:
        """As `end` without grace, when the API is down."""
        self._no_api.set()
        self.end(0)

    def run(self) -> None:
        try:
            code = self._live()
        except Exception as error:  # noqa: BLE001 - a kubelet reports it in the status of the pod
            self._patch({"phase": "Failed", "reason": "TestKubelet", "message": repr(error)})
        else:
            self._write_end(code)
        if self.deleted:
            self._forget()

    def _live(self) -> int | None:
        """Run the container; the exit code, None where it never ran."""
        (container,) = self._pod["spec"]["containers"]
        if container["image"].startswith(ABSENT_IMAGE):
            self._refuse_image(container["image"])
            return None
        files = self._until(lambda: PodFiles(self._api, self._pod, self._folder), "ContainerCreating")
        if files is None:
            return None
        home = self._folder / "home"
        home.mkdir()
        wanted = self._until(
            lambda: program(self._pod, files, self._pod_ip, self._api.address.url, home),
            "CreateContainerConfigError",
        )
        if wanted is None:
            return None
        self.log.touch()
        process = subprocess.Popen(
            [shutil.which("setpriv") or "setpriv", "--pdeathsig", "KILL", *wanted.command],
            cwd=home,
            env=wanted.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        logger = threading.Thread(target=keep_log, args=(process.stdout, self.log), daemon=True)
        logger.start()
        self._started_at = timestamp()
        self._write_running()
        code = self._wait(process)
        for left in self._processes():  # the end of a container's first process kills all others
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()
        logger.join(LOG_S)
        shutil.rmtree(home, ignore_errors=True)
        return code if code >= 0 else 128 - code

    def _wait(self, process: "subprocess.Popen[bytes]") -> int:
        while (code := process.poll()) is None:
            if self._end_asked.is_set():
                if not self._term_sent and not self._fate:
                    self._term_sent = True
                    process.send_signal(signal.SIGTERM)
                if self._kill_at is not None and time.monotonic() >= self._kill_at:
                    process.kill()
                time.sleep(LOOK_S)
            else:
                self._end_asked.wait(LOOK_S)
        return code

    def _until(self, make: Callable[[], T], reason: str) -> T | None:
        """The result of `make` as soon as it has its sources; None when the pod is ended before."""
        while not self._end_asked.is_set():
            try:
                return make()
            except NotThereYet as error:
                self._write_waiting(reason, str(error))
                self._end_asked.wait(RETRY_S)
        return None

    def _refuse_image(self, image: str) -> None:
        while not self._end_asked.is_set():
            for reason in ("ErrImagePull", "ImagePullBackOff"):
                self._write_waiting(reason, f'failed to pull image "{image}": not found')
                self._end_asked.wait(RETRY_S)

    def _processes(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(POD_MARK) == self._uid:
                    yield process

    def _write_waiting(self, reason: str, message: str) -> None:
        waiting = {"reason": reason, "message": message}
        self._patch({"phase": "Pending", "containerStatuses": [self._container({"waiting": waiting})]})

    def _write_running(self) -> None:
        running = {"running": {"startedAt": self._started_at}}
        self._patch(
            {
                "phase": "Running",
                "podIP": self._pod_ip,
                "podIPs": [{"ip": self._pod_ip}],
                "startTime": self._started_at,
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [self._container(running, ready=True)],
            }
        )

    def _write_end(self, code: int | None) -> None:
        fate = self._fate or Fate()
        if fate.silent:
            return
        status: Document = {
            "phase": "Succeeded" if code == 0 else "Failed",
            "conditions": [{"type": "Ready", "status": "False"}],
        }
        if fate.pod_reason:
            status |= {"reason": fate.pod_reason, "message": fate.message}
        if code is not None:
            ended = {
                "exitCode": code,
                "reason": fate.container_reason or ("Completed" if code == 0 else "Error"),
                "startedAt": self._started_at,
                "finishedAt": timestamp(),
            }
            if (written := self._folder / "termination-log").exists():
                ended["message"] = written.read_bytes()[:4096].decode("utf-8", errors="replace")
            status["containerStatuses"] = [self._container({"terminated": ended})]
        self._patch(status)

    def _container(self, state: Document, *, ready: bool = False) -> Document:
        (container,) = self._pod["spec"]["containers"]
        others = {name: None for name in ("waiting", "running", "terminated") if name not in state}
        return {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "restartCount": 0,
            "state": state | others,
        }

    def _patch(self, status: Document) -> None:
        body = {"metadata": {"uid": self._uid}, "status": status}  # not that of another pod with this name
        self._insist(lambda: self._api.patch(f"{self._path}/status", body))

    def _forget(self) -> None:
        self._insist(lambda: self._api.delete(self._path, grace_seconds=0, uid=self._uid))

    def _insist(self, act: Callable[[], object]) -> None:
        """Retry until the API answers, as a kubelet does; a deleted pod is no error."""
        while not self._no_api.is_set():
            try:
                act()
            except ApiError as error:
                if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                    raise
            except urllib3.exceptions.HTTPError:
                self._no_api.wait(RETRY_S)
                continue
            return

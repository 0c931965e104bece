"""etcd and kube-apiserver on loopback, with RBAC and the admission of a usual cluster."""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import urllib3

from queues.embedded.ports import free_ports
from tests.servers.kubernetes.api import Api, ApiAddress, ApiError
from tests.servers.kubernetes.binary import etcd, kube_apiserver
from tests.servers.zookeeper import unavailable
from tests.waiting import wait_until

START_TIMEOUT_S = 120
_LOOPBACK = "127.0.0.1"


class Server:
    """One server program; it ends with this process, even on KILL, and can be stopped and started."""

    def __init__(self, command: Sequence[str], output: Path) -> None:
        self._command = ["setpriv", "--pdeathsig", "KILL", *command]
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._output.open("ab") as file:
            self._process = subprocess.Popen(
                self._command,
                env={
                    "PATH": os.environ["PATH"]
                },  # without the mark of the test that restarts it: it outlives the test
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def check(self) -> None:
        if self._process is None or self._process.poll() is not None:
            words = self._output.read_text("utf-8", errors="replace")[-1500:]
            unavailable(f"no Kubernetes: {self._command[3]} has ended: {words}")

    def stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()  # an orderly end of the API server waits for its watchers for seconds
        self._process.wait(30)
        self._process = None


class ControlPlane:
    """The API with its store; `stop_api` and `start_api` make an outage without loss of data."""

    def __init__(self, address: ApiAddress, api_server: Server) -> None:
        self.address = address
        self._api_server = api_server

    def stop_api(self) -> None:
        self._api_server.stop()

    def start_api(self) -> None:
        self._api_server.start()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        wait_until(self._is_ready, START_TIMEOUT_S, f"the Kubernetes API answers at {self.address.url}")

    def _is_ready(self) -> bool:
        self._api_server.check()
        if not self.address.ca.exists():  # it writes its certificate at its first start
            return False
        api = Api(self.address)
        try:
            return api.text("/readyz") == "ok" and bool(api.get("/api/v1/namespaces/default"))
        except (ApiError, urllib3.exceptions.HTTPError):
            return False
        finally:
            api.close()


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """Yield a running control plane; all its files are below one temporary folder."""
    for program in ("openssl", "setpriv"):
        if shutil.which(program) is None:
            unavailable(
                f"no Kubernetes: KUBERNETES_TEST_KUBECONFIG is not set, and there is no {program} "
                "(Debian: openssl, util-linux)"
            )
    with ExitStack() as stack:
        binary = kube_apiserver()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubernetes-")))
        client_port, peer_port, api_port = free_ports(_LOOPBACK, 3)
        store = f"http://{_LOOPBACK}:{client_port}"
        token = secrets.token_hex(16)
        certificates = folder / "certificates"
        certificates.mkdir()
        key = folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        tokens = folder / "tokens.csv"
        tokens.write_text(f"{token},admin,admin,system:masters\n", "utf-8")
        etcd_server = Server(
            [
                *(str(etcd()), "--data-dir", str(folder / "etcd"), "--name", "tests"),
                *("--listen-client-urls", store, "--advertise-client-urls", store),
                *("--listen-peer-urls", f"http://{_LOOPBACK}:{peer_port}"),
                *("--initial-advertise-peer-urls", f"http://{_LOOPBACK}:{peer_port}"),
                *("--initial-cluster", f"tests=http://{_LOOPBACK}:{peer_port}"),
            ],
            folder / "etcd.log",
        )
        api_server = Server(
            [
                str(binary),
                f"--etcd-servers={store}",
                f"--bind-address={_LOOPBACK}",
                f"--advertise-address={_LOOPBACK}",
                f"--secure-port={api_port}",
                f"--cert-dir={certificates}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-cluster-ip-range=10.0.0.0/24",
                f"--token-auth-file={tokens}",
                "--authorization-mode=RBAC",
                "--endpoint-reconciler-type=none",  # it refuses loopback as an endpoint
                "--kubelet-preferred-address-types=InternalIP",
                "--shutdown-delay-duration=0",
            ],
            folder / "kube-apiserver.log",
        )
        plane = ControlPlane(
            ApiAddress(f"https://{_LOOPBACK}:{api_port}", certificates / "apiserver.crt", token), api_server
        )
        for server in (etcd_server, api_server):
            stack.callback(server.stop)
            server.start()
        plane.wait_until_ready()
        yield plane

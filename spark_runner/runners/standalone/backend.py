"""The standalone backend: two runners for each cluster, one of each deploy mode."""

from collections.abc import Mapping
from pathlib import Path

from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import Runner, SparkTarget, SubmissionPlace
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.address import StandaloneCluster
from spark_runner.runners.standalone.client_mode import ClientModeRunner
from spark_runner.runners.standalone.cluster_mode import ClusterModeRunner
from spark_runner.runners.standalone.launch import note_staging

_NAME = "standalone"
_ID = "id"


class StandaloneBackend:
    """Has two runners for each cluster, one of each deploy mode.

    `driver_main` is the file that spark-submit runs. Drivers in cluster mode write their files to the state
    directory of `submits` too, unless a definition names another folder.
    """

    def __init__(self, submits: SparkSubmits, *, driver_main: Path) -> None:
        self._submits = submits
        self._driver_main = driver_main
        self._clients: dict[StandaloneCluster, ClientModeRunner] = {}
        self._clusters: dict[tuple[StandaloneCluster, Path], ClusterModeRunner] = {}

    def runner_for(self, target: SparkTarget) -> Runner:
        """The runner for a definition's target; raises RefusedSubmission if there can be none."""
        cluster = StandaloneCluster.of(target)
        if target.deploy_mode == "client":
            return self._client(cluster)
        staging = Path(target.options.get("staging") or self._submits.state_dir)
        if not staging.is_absolute():
            raise RefusedSubmission(f"`staging` must be an absolute path that all nodes see: {staging}")
        return self._on_cluster(cluster, staging)

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop submissions at `place`; None if no runner here can."""
        try:
            cluster = StandaloneCluster.at(place.cluster)
        except KeyError:
            return None
        if place.host:
            return self._client(cluster) if self._submits.reaches(place) else None
        return self._on_cluster(cluster, Path(place.cluster["staging"])) if _sees(place.cluster) else None

    def places(self) -> list[SubmissionPlace]:
        """This host for client mode, and any cluster."""
        return [self._submits.place(_NAME), SubmissionPlace(_NAME)]

    def _client(self, cluster: StandaloneCluster) -> ClientModeRunner:
        if cluster not in self._clients:
            self._clients[cluster] = ClientModeRunner(cluster, self._submits, driver_main=self._driver_main)
        return self._clients[cluster]

    def _on_cluster(self, cluster: StandaloneCluster, staging: Path) -> ClusterModeRunner:
        key = (cluster, staging)
        if key not in self._clusters:
            note_staging(self._submits.state_dir, staging)
            self._clusters[key] = ClusterModeRunner(cluster, staging, driver_main=self._driver_main)
        return self._clusters[key]


def _sees(cluster: Mapping[str, str]) -> bool:
    """Whether this host has the same folder under the path of that place."""
    try:
        return Path(cluster["staging"], _ID).read_text(encoding="utf-8").strip() == cluster["store"]
    except (OSError, ValueError, KeyError):
        return False

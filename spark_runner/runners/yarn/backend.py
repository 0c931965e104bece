"""The YARN backend: selects the cluster, and one runner for each of its deploy modes."""

import getpass
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from spark_runner.protocol.errors import RefusedSubmission
from spark_runner.runners.base import Runner, SparkTarget, SubmissionPlace
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.yarn.api import URLS, ResourceManager
from spark_runner.runners.yarn.client_mode import YarnClientRunner
from spark_runner.runners.yarn.cluster_mode import YarnClusterRunner
from spark_runner.runners.yarn.site import conf_dir, needs_kerberos, resource_manager_urls


class YarnBackend:
    """The YARN clusters that Hadoop's configuration, definitions or earlier attempts name."""

    def __init__(self, submits: SparkSubmits, *, driver_main: Path) -> None:
        self._submits = submits
        self._driver_main = driver_main
        self._managers: dict[tuple[str, ...], ResourceManager] = {}
        self._runners: dict[tuple[ResourceManager, bool], Runner] = {}

    def runner_for(self, target: SparkTarget) -> Runner:
        """The runner of the cluster that HADOOP_CONF_DIR names; raises RefusedSubmission, NotConfigured.

        The option `resource_manager` gives the address of its web pages, if yarn-site.xml does not.
        """
        folder = conf_dir(os.environ)
        if needs_kerberos(folder):
            raise RefusedSubmission(
                f"YARN's web services require Kerberos (SPNEGO), as {folder} says: that is not supported"
            )
        given = [url.strip() for url in target.options.get("resource_manager", "").split(",") if url.strip()]
        for url in given:
            if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).netloc:
                raise RefusedSubmission(f"resource_manager {url!r} is not an address: write http://host:8088")
        return self._runner(
            given or resource_manager_urls(folder), on_cluster=target.deploy_mode == "cluster"
        )

    def runner_at(self, place: SubmissionPlace) -> Runner | None:
        """The runner that can see and stop submissions at `place`; None if no runner here can."""
        urls = [url for url in place.cluster.get(URLS, "").split(",") if url]
        if not urls:
            return None
        runner = self._runner(urls, on_cluster=not place.host)
        return runner if runner.reaches(place) else None

    def places(self) -> list[SubmissionPlace]:
        """Any cluster, and this host for drivers in client mode."""
        return [SubmissionPlace("yarn"), self._submits.place("yarn")]

    def _runner(self, urls: Sequence[str], *, on_cluster: bool) -> Runner:
        manager = self._managers.setdefault(tuple(urls), ResourceManager(urls, user=user_name()))
        if (manager, on_cluster) not in self._runners:
            kind = YarnClusterRunner if on_cluster else YarnClientRunner
            self._runners[manager, on_cluster] = kind(self._submits, manager, driver_main=self._driver_main)
        return self._runners[manager, on_cluster]


def user_name() -> str:
    """The user that Hadoop's clients act as without authentication."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()

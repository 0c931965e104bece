"""Checks that YARN accepts submissions before spark-submit starts, which would retry silently for long."""

import os

from spark_runner.errors import BackendUnreachable, NotConfigured, SubmissionError
from spark_runner.runners.http_json import CONNECT_SECONDS
from spark_runner.runners.no_answer import refuses
from spark_runner.runners.yarn.api import ResourceManager
from spark_runner.runners.yarn.launch import run_tag
from spark_runner.runners.yarn.site import conf_dir, submission_addresses


def check_reach(manager: ResourceManager, run: str) -> None:
    """Raise SubmissionError unless a ResourceManager lists its applications and accepts connections."""
    try:
        manager.applications([run_tag(run)])
        _check_listens()
    except BackendUnreachable as error:
        raise SubmissionError(f"driver of run {run} not submitted: {error}") from error


def _check_listens() -> None:
    try:
        folder = conf_dir(os.environ)
        addresses = submission_addresses(folder)
    except NotConfigured:
        return  # spark-submit reports that itself
    troubles = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        why = refuses(host, port, CONNECT_SECONDS)
        if not why:
            return  # only the active one of several listens
        troubles.append(f"{address} does not answer: {why}")
    if troubles:
        raise BackendUnreachable(
            f"no ResourceManager accepts applications: {'; '.join(troubles)}; correct "
            f"yarn.resourcemanager.address in {folder / 'yarn-site.xml'}"
        )

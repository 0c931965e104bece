"""The Python packages of a job: installed on this host before it starts, for driver and executors."""

import sys
from collections.abc import Mapping

from orchestrator.handlers.job_context import JobContext
from orchestrator.handlers.warnings import recordable_text
from orchestrator.model.spark import Spark
from orchestrator.model.waiting import Reason, Waiting
from queues import LOW_LANE_SUFFIX
from spark_runner.protocol.errors import RefusedSubmission, SubmissionError
from spark_runner.runners.base import SparkTarget
from spark_runner.runners.installation import own_installation
from spark_runner.runners.launch import is_local
from spark_runner.runners.packages.environment import Environment, Wanted
from spark_runner.runners.packages.installer import Installer

UNPACKED = "orchestrator-packages"
"""The name of the folder to which Spark unpacks the archive on other hosts."""

_ARCHIVES = "spark.archives"
_PATH = "spark.executorEnv.PYTHONPATH"


def installing(job: JobContext, spark: Spark) -> Waiting | None:
    """Why the job cannot start yet: its packages are being installed. None if it needs none, or has them.

    Raises RefusedSubmission where they cannot be installed, SubmissionError where a later try may succeed.
    """
    wanted = _wanted(job, spark)
    if wanted is None:
        return None
    installer = _installer(job)
    if installer.ready(wanted) is not None:
        return None
    job.context.admission.declined.add(job.id, f"packages {wanted!r}", lambda: _free(installer, wanted))
    return Waiting(reason=Reason.PACKAGES, message=recordable_text(f"installs {wanted}"))


def _free(installer: Installer, wanted: Wanted) -> int:
    return sys.maxsize if installer.is_settled(wanted) else 0


def environment(job: JobContext, spark: Spark) -> Environment | None:
    """The packages of a job that starts now, None without `requirements`; raises SubmissionError."""
    wanted = _wanted(job, spark)
    if wanted is None:
        return None
    found = _installer(job).ready(wanted)
    if found is None:  # they were removed meanwhile, or another host has announced the attempt
        raise SubmissionError(
            "the host that submits the job does not have its packages yet: it installs them"
        )
    return found


def with_packages(conf: Mapping[str, str], found: Environment, target: SparkTarget) -> dict[str, str]:
    """The Spark properties with which Python in tasks finds the packages."""
    own, archives = conf.get(_PATH, ""), conf.get(_ARCHIVES, "")
    if is_local(target.master):
        return {**conf, _PATH: _joined(":", str(found.folder), own)}
    archive = f"{found.archive}#{UNPACKED}"
    return {**conf, _PATH: _joined(":", UNPACKED, own), _ARCHIVES: _joined(",", archives, archive)}


def folder_of(found: Environment, target: SparkTarget) -> str:
    """The folder of the packages where the driver runs."""
    return str(found.folder) if target.deploy_mode == "client" else UNPACKED


def _wanted(job: JobContext, spark: Spark) -> Wanted | None:
    requirements = job.definition.requirements
    if not requirements:
        return None
    pool = job.claim.record.pool.removesuffix(LOW_LANE_SUFFIX)
    installation = job.context.rules.installations.of(pool) or own_installation()
    return Wanted(
        requirements,
        python=(installation and installation.python) or sys.executable,
        spark=installation.version if installation else "",
        packed=not is_local(spark.target.master),
    )


def _installer(job: JobContext) -> Installer:
    if job.context.drivers.installer is None:
        raise RefusedSubmission("this worker installs no Python packages: remove `requirements`")
    return job.context.drivers.installer


def _joined(mark: str, *items: str) -> str:
    return mark.join(filter(None, items))

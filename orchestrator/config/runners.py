"""The runners of drivers, as the settings of this host describe them."""

from functools import partial
from pathlib import Path

from orchestrator.config.installations import Installations, pool_installations
from orchestrator.config.settings import Settings
from orchestrator.config.spark_defaults import pool_spark, warm_specs
from orchestrator.model.errors import SettingsError
from spark_runner.protocol.warm_files import ServerPlan
from spark_runner.runners.class_archive.archives import ClassArchives
from spark_runner.runners.kubernetes.backend import KubernetesBackend
from spark_runner.runners.local import LocalRunner
from spark_runner.runners.registry import OneRunner, Runners, installed_backends
from spark_runner.runners.run_as import RunAsError, Users
from spark_runner.runners.spark_submits import SparkSubmits
from spark_runner.runners.standalone.backend import StandaloneBackend
from spark_runner.runners.warm import WarmServers, WarmSupervisor
from spark_runner.runners.yarn.backend import YarnBackend

DRIVER_MAIN = Path(__file__).parents[2] / "spark_runner" / "driver" / "driver_main.py"


def build_runners(
    settings: Settings,
    *,
    owned: bool = False,
    warm: bool = True,
    users: Users | None = None,
    installations: Installations | None = None,
) -> Runners:
    """All runners. `owned`: processes on this host end with this process, because its ZooKeeper does.

    Without `warm` there are no warm servers: a single job does not need one. `users` run the drivers.
    `installations` are the Sparks of pools; None = find them. Raises SettingsError.
    """
    cache_dir = settings.cache_dir if users is None else users.folder
    archives = ClassArchives(cache_dir) if settings.class_archives else None
    kept = partial(SparkSubmits, owned=owned, quick_start=archives, passed_on=settings.drivers.environment)
    submits, shared = kept(settings.state_dir, users=users), kept(settings.state_dir / "warm")
    specs = []
    if warm:
        found = pool_installations(settings.spark) if installations is None else installations
        specs = warm_specs(settings.spark, pool_spark(settings.spark), found.of)
    supervisor = WarmSupervisor(WarmServers(shared, ServerPlan(settings.warm.recycling)), specs)
    local = LocalRunner(submits, driver_main=DRIVER_MAIN, warm=supervisor)
    return Runners(
        {
            "local": partial(OneRunner, local),
            "standalone": partial(StandaloneBackend, submits, driver_main=DRIVER_MAIN),
            "yarn": partial(YarnBackend, submits, driver_main=DRIVER_MAIN),
            "kubernetes": partial(KubernetesBackend, submits, driver_main=DRIVER_MAIN),
            **installed_backends(),
        },
        companions=[supervisor],
    )


def users_of_drivers(settings: Settings) -> Users | None:
    """The users of a worker's drivers, None for its own; raises SettingsError where it cannot use them."""
    if not settings.drivers.run_as:
        return None
    try:
        return Users(settings.users_dir, settings.drivers.run_as)
    except RunAsError as error:
        raise SettingsError(str(error)) from error

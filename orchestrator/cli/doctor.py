"""`orchestrator doctor`: whether this host is fit for a worker and its drivers."""

from collections.abc import Iterator

from orchestrator.cli.connect import command_session
from orchestrator.cli.findings import report
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose
from orchestrator.cli.output import stderr_console
from orchestrator.client.connect import build_queue_set, client_name, find_zookeeper
from orchestrator.config.settings import Settings, load_settings
from orchestrator.doctor.ensemble import check_own_clock
from orchestrator.doctor.findings import Finding, FindingKind, in_order
from orchestrator.doctor.host.checks import check_host
from orchestrator.model.errors import NotRunning
from queues import QueueError, UnsafeDirectory


def doctor(output: Output = OutputFormat.TABLE, verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """Check this host: Java, Spark, memory, disks, directories, ports, clock; it may be its first command.

    Exit with 1 if an error or a warning is left. Nothing is changed. A ZooKeeper is not needed; a configured
    one is reached, and its clock compared. `cluster doctor` checks the jobs and workers there. docs/doctor.md
    describes each finding.

    Example: orchestrator doctor
    """
    settings = load_settings()
    found = in_order([*check_host(settings), *_zookeeper(settings, quiet=quiet)])
    report(found, output, quiet=quiet)


def _zookeeper(settings: Settings, *, quiet: bool) -> Iterator[Finding]:
    """Whether the configured ZooKeeper is reached, and how far the clock of this host is from its clock."""
    try:
        found = find_zookeeper(settings)
        with command_session(found) as session:
            if session.exists(found.root) is not None:  # without it there is no node to write
                yield from check_own_clock(build_queue_set(session, found, owner=client_name()))
        if not quiet:
            stderr_console().print("`orchestrator cluster doctor` checks the jobs and workers of the cluster")
    except NotRunning:  # the first run starts one
        return
    except UnsafeDirectory:  # a finding of the directories
        return
    except QueueError as error:
        message, *servers = str(error).splitlines()
        what, _, remedy = message.partition("; ")
        what = "; ".join([what, *map(str.strip, servers)])
        usual = "check zookeeper_hosts, the login and the server; without zookeeper_hosts `up` starts one"
        hosts = settings.zookeeper_hosts or str(settings.zookeeper_dir)
        yield Finding.of(FindingKind.ZOOKEEPER_UNREACHABLE, hosts, what, remedy or usual)

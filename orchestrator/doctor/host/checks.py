"""The registry of the checks of this host, in the order in which they run."""

from collections.abc import Sequence

from orchestrator.config.settings import Settings
from orchestrator.doctor.findings import Finding, in_order
from orchestrator.doctor.host import directories, network, programs, resources
from orchestrator.doctor.rights import check_settings

# Each takes the settings and yields findings.
CHECKS = (
    programs.check_java,
    programs.check_spark,
    programs.check_system,
    resources.check_memory,
    resources.check_disks,
    resources.check_open_files,
    directories.check_directories,
    directories.check_temporary,
    network.check_ports,
    network.check_name,
    check_settings,
)


def check_host(settings: Settings) -> Sequence[Finding]:
    """All findings about this host, the most severe first; nothing is changed."""
    return in_order(finding for check in CHECKS for finding in check(settings))

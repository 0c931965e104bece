"""`orchestrator cluster`: the status of the cluster, its problems and their fixes."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from orchestrator.cli.acting import confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.findings import report, show_findings
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import (
    show_page,
    stderr_console,
    stdout_console,
    table,
)
from orchestrator.cli.worker.rows import workers_table
from orchestrator.doctor.ensemble import ServerStatus
from orchestrator.doctor.findings import in_order
from orchestrator.doctor.rights import check_settings
from orchestrator.doctor.status import ClusterStatus
from orchestrator.model.errors import NotConfirmed
from orchestrator.model.states import Queue

app = typer.Typer(no_args_is_help=True, help="Inspect workers and pools; find and fix problems.")

_DROP_POOLS = ("spark", "weight", "cap", "success", "kill", "fail", "paused")
_FACT_INDENT = 15
_SHOWN_PER_KIND = 20  # in a table; JSON output has all


@app.command()
def status(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Show the ZooKeeper servers, the leading worker, the workers, and the pools with their queues.

    Example: orchestrator cluster status -w 2
    """
    with connected() as (client, _):
        show_page(client.status, _show_status, lambda now: now.model_dump(mode="json"), output, watch)


def _show_status(now: ClusterStatus) -> None:
    console = stdout_console()
    facts = [
        *(("zookeeper", line) for line in _server_lines(now.servers)),
        ("session", now.session),
        ("latency", f"{now.latency_ms:.1f} ms"),
        ("root", now.root),
        ("leading worker", now.leader or "none"),
        ("config", now.config_error or ", ".join(f"{name} = {value}" for name, value in now.config.items())),
    ]
    shown = ""
    for name, value in facts:
        if value:
            console.prose(f"{name if name != shown else '':<{_FACT_INDENT}}{value}", hang=_FACT_INDENT)
            shown = name
    console.print()
    console.print(workers_table(now.workers) if now.workers else "no workers")
    console.print()
    pools = [
        [
            p.pool,
            *_binding(p.weight, p.cap),
            "paused" if p.paused else "",
            ", ".join(p.spark),
            *(p.queues[q] for q in Queue),
        ]
        for p in now.pools
    ]
    console.print(table(["pool", "weight", "cap", "paused", "spark", *Queue], pools, _DROP_POOLS))


def _server_lines(servers: Sequence[ServerStatus]) -> Iterator[str]:
    address_width = max((len(server.address) for server in servers), default=0)
    role_width = max((len(server.role) for server in servers), default=0)
    for server in servers:
        if not server.reached:
            state = f"not reached: {server.error}"
        elif not server.role:
            state = f"reached, role unknown: {server.error}"
        else:
            state = f"{server.role:<{role_width}}  {server.version}".rstrip()
        yield f"{server.address:<{address_width}}  {state}"


def _binding(weight: int | None, cap: int | None) -> tuple[object, object]:
    return "" if weight is None else weight, cap or ""


@app.command()
def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Fix the findings that are safe to fix.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: Output = OutputFormat.TABLE,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Find and explain problems: damage, left-over nodes, stuck drivers, clocks, pools, workers.

    Exit with 1 if an error or a warning is left. Without --fix, nothing is changed except the node
    of the clock. docs/doctor.md describes each finding and what --fix does.

    Example: orchestrator cluster doctor --fix --yes
    """
    # Checked before the search: the exit code of a script must not depend on the findings.
    if fix and not yes and not sys.stdin.isatty():
        raise NotConfirmed("there is no terminal to ask on; confirm with --yes")
    with connected(start_own=not fix) as (client, settings):
        found = client.doctor.check()
        fixable = [finding for finding in found if finding.fixable]
        if fix and fixable:
            if not yes:
                show_findings(fixable, stderr_console())
            confirm(f"Fix these findings ({len(fixable):,})?", yes=yes)
            found = client.doctor.fix(found)
        found = in_order([*found, *check_settings(settings)])
    report(found, output, quiet=quiet)

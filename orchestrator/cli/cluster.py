"""`orchestrator cluster`: the status of the cluster, its problems and their fixes."""

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.acting import confirm
from orchestrator.cli.connect import connected
from orchestrator.cli.exits import Exit
from orchestrator.cli.options import Output, OutputFormat, Quiet, Verbose, Watch
from orchestrator.cli.output import (
    show_page,
    show_rows,
    stderr_console,
    stdout_console,
    table,
)
from orchestrator.doctor.ensemble import ServerStatus
from orchestrator.doctor.findings import Finding, in_order
from orchestrator.doctor.rights import check_settings
from orchestrator.doctor.status import ClusterStatus
from orchestrator.model.errors import NotConfirmed
from orchestrator.model.states import Queue
from orchestrator.model.times import local_time

app = typer.Typer(no_args_is_help=True, help="Inspect workers and pools; find and fix problems.")

_SHOWN_PER_KIND = 20  # in a table; JSON output has all


@app.command()
def status(
    output: Output = OutputFormat.TABLE, watch: Watch = None, verbose: Verbose = 0, quiet: Quiet = False
) -> None:
    """Show the ZooKeeper servers, the leader, the workers, and the pools with their queues.

    Example: orchestrator cluster status -w 2
    """
    with connected() as (client, _):
        show_page(client.status, _show_status, lambda now: now.model_dump(mode="json"), output, watch)


def _show_status(now: ClusterStatus) -> None:
    console = stdout_console()
    facts = [
        ("zookeeper", ", ".join(map(_server, now.servers))),
        ("session", now.session),
        ("latency", f"{now.latency_ms:.1f} ms"),
        ("root", now.root),
        ("leader", now.leader or "none"),
        ("config", now.config_error or ", ".join(f"{name} = {value}" for name, value in now.config.items())),
    ]
    for name, value in facts:
        if value:
            console.print(f"{name:<10} {value}", markup=False, soft_wrap=True)
    console.print()
    if now.workers:
        rows = [
            [
                w.name,
                w.host,
                str(w.pid),
                w.slots,
                w.running,
                local_time(w.since or None),
                w.version,
                w.session,
            ]
            for w in now.workers
        ]
        console.print(
            table(["worker", "host", "pid", "slots", "running", "since", "version", "session"], rows)
        )
    else:
        console.print("no workers")
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
    console.print(table(["pool", "weight", "cap", "paused", "spark", *Queue], pools))


def _server(server: ServerStatus) -> str:
    return server.address if server.reached else f"{server.address} (not reached: {server.error})"


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
        raise NotConfirmed("there is no terminal to confirm the fixes on: give --yes")
    with connected(start_own=not fix) as (client, settings):
        found = client.doctor.check()
        fixable = [finding for finding in found if finding.fixable]
        if fix and fixable:
            if not yes:
                _show_findings(fixable, stderr_console())
            confirm(f"Fix these findings ({len(fixable):,})?", yes=yes)
            found = client.doctor.fix(found)
        found = in_order([*found, *check_settings(settings)])
    if output is OutputFormat.TABLE:
        _show_findings(found, stdout_console())
    else:
        show_rows([finding.model_dump(mode="json") for finding in found], {}, output)
    left = sum(finding.is_left for finding in found)
    if not quiet:
        words = f"findings left: {left:,}" if left else "no problems left"
        fixed = sum(finding.fixed for finding in found)
        stderr_console().print(words + (f"; fixed: {fixed:,}" if fixed else ""), markup=False)
    if left:
        raise typer.Exit(Exit.FAILED)


def _show_findings(found: Sequence[Finding], console: Console) -> None:
    for severity, of_severity in groupby(found, key=lambda finding: finding.severity):
        console.print(f"{severity}s", style="bold")
        for _, of_kind in groupby(of_severity, key=lambda finding: finding.kind):
            _show_kind(list(of_kind), console)


def _show_kind(findings: Sequence[Finding], console: Console) -> None:
    for finding in findings[:_SHOWN_PER_KIND]:
        mark = "fixed: " if finding.fixed else ""
        lines: list[Any] = [f"  {finding.kind}  {finding.path}", f"    {mark}{finding.what}"]
        if finding.remedy and not finding.fixed:
            lines.append(f"    -> {finding.remedy}")
        for line in lines:
            console.print(line, markup=False)
    if len(findings) > _SHOWN_PER_KIND:
        more = len(findings) - _SHOWN_PER_KIND
        console.print(f"  {findings[0].kind}  and {more:,} more (-o json shows all)", markup=False)

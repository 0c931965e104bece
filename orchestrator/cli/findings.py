"""Findings of the doctor on the command line, and the exit code for those that are left."""

from collections.abc import Sequence
from itertools import groupby

import typer

from orchestrator.cli.exits import Exit
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import SafeConsole, show_rows, stderr_console, stdout_console
from orchestrator.doctor.findings import Finding

_SHOWN_PER_KIND = 20  # in a table; JSON output has all


def report(found: Sequence[Finding], output: OutputFormat, *, quiet: bool) -> None:
    """Write the findings; exit with 1 if an error or a warning is left."""
    if output is OutputFormat.TABLE:
        show_findings(found, stdout_console())
    else:
        show_rows([finding.model_dump(mode="json") for finding in found], {}, output)
    left = sum(finding.is_left for finding in found)
    if not quiet:
        fixed = sum(finding.fixed for finding in found)
        none = "no problems left" if fixed else "no problems"
        words = f"findings left: {left:,}" if left else none
        stderr_console().print(words + (f"; fixed: {fixed:,}" if fixed else ""), markup=False)
    if left:
        raise typer.Exit(Exit.FAILED)


def show_findings(found: Sequence[Finding], console: SafeConsole) -> None:
    """Write the findings by severity and kind."""
    for severity, of_severity in groupby(found, key=lambda finding: finding.severity):
        console.print(f"{severity}s", style="bold")
        for _, of_kind in groupby(of_severity, key=lambda finding: finding.kind):
            _show_kind(list(of_kind), console)


def _show_kind(findings: Sequence[Finding], console: SafeConsole) -> None:
    for finding in findings[:_SHOWN_PER_KIND]:
        mark = "fixed: " if finding.fixed else ""
        console.prose(f"{finding.kind}  {finding.path}", indent=2)
        console.prose(f"{mark}{finding.what}", indent=4)
        if finding.remedy and not finding.fixed:
            console.prose(f"-> {finding.remedy}", indent=4)
    if len(findings) > _SHOWN_PER_KIND:
        more = len(findings) - _SHOWN_PER_KIND
        console.print(f"  {findings[0].kind}  and {more:,} more (-o json shows all)", markup=False)

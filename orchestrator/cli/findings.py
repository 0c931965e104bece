"""Findings of the doctor on the command line, and the exit code for those that are left."""

import textwrap
from collections.abc import Sequence
from itertools import groupby

import typer
from rich.console import Console

from orchestrator.cli.exits import Exit
from orchestrator.cli.options import OutputFormat
from orchestrator.cli.output import show_rows, stderr_console, stdout_console
from orchestrator.doctor.findings import Finding
from orchestrator.logs.visible import visible

_SHOWN_PER_KIND = 20  # in a table; JSON output has all
_LEAST_WIDTH = 20


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


def show_findings(found: Sequence[Finding], console: Console) -> None:
    """Write the findings by severity and kind."""
    for severity, of_severity in groupby(found, key=lambda finding: finding.severity):
        console.print(f"{severity}s", style="bold")
        for _, of_kind in groupby(of_severity, key=lambda finding: finding.kind):
            _show_kind(list(of_kind), console)


def _show_kind(findings: Sequence[Finding], console: Console) -> None:
    for finding in findings[:_SHOWN_PER_KIND]:
        mark = "fixed: " if finding.fixed else ""
        _show(console, 2, f"{finding.kind}  {finding.path}")
        _show(console, 4, f"{mark}{finding.what}")
        if finding.remedy and not finding.fixed:
            _show(console, 4, f"-> {finding.remedy}")
    if len(findings) > _SHOWN_PER_KIND:
        more = len(findings) - _SHOWN_PER_KIND
        console.print(f"  {findings[0].kind}  and {more:,} more (-o json shows all)", markup=False)


def _show(console: Console, indent: int, words: str) -> None:
    """Write words with an indent that each line on a terminal has; a path is never broken."""
    lines = [words]
    if console.is_terminal:
        width = max(_LEAST_WIDTH, console.width - indent - 1)
        lines = textwrap.wrap(visible(words), width, break_long_words=False, break_on_hyphens=False)
    for line in lines:
        console.print(" " * indent + line, markup=False, soft_wrap=True)

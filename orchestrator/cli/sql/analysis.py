"""What lint and a local Spark find in one script, together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.cli.sql.lint import Finding, Severity, findings_of, of_error
from orchestrator.cli.sql.local_spark import ask_spark
from orchestrator.cli.sql.script import checked_script
from orchestrator.model.definition import Definition
from orchestrator.sql.guarantees import guarantee_of_table
from spark_runner.sql.text.errors import SqlError


@dataclass(frozen=True, slots=True)
class Analysis:
    """The findings in order of the script, and what Spark says of its statements unless lint finds errors."""

    findings: list[Finding]
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_error(self) -> bool:
        """Whether a run of the script would fail."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def analyse_definition(
    definition: Definition, name: str, *, connect: bool, with_plan: bool, quiet: bool
) -> Analysis:
    """Lint the script of a definition, and let Spark analyse it if lint finds no error."""
    found = list(findings_of(definition, name))
    if any(finding.severity is Severity.ERROR for finding in found):
        return Analysis(found)
    request = {"kind": "explain", "connect": connect, "with_plan": with_plan}
    script = checked_script(definition, name)
    report = ask_spark(script, request, quiet=quiet)
    _add_guarantees(report, script.plan)
    for severity, part in ((Severity.ERROR, "errors"), (Severity.WARNING, "warnings")):
        found += [of_error(SqlError(**error), severity) for error in report[part]]
    return Analysis(sorted(found, key=lambda finding: (finding.line, finding.column)), report)


def _add_guarantees(report: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
    """Add what the sinks of connectors promise; files have said it already."""
    tables = {step["name"]: step for step in plan["steps"] if step["kind"] == "table"}
    for statement in report["statements"]:
        if statement["kind"] == "insert" and not statement["guarantee"]:
            statement["guarantee"] = guarantee_of_table(tables[statement["target"]])

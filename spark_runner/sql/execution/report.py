"""What an analysis of a script found, as JSON."""

from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.text.errors import SqlError


@dataclass
class Report:
    """The statements, and the errors and warnings, each once."""

    statements: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    contacted: list[str] = field(default_factory=list)  # tables that were read for their columns
    probes: list[dict[str, Any]] = field(default_factory=list)

    def add(self, error: SqlError, *, is_error: bool = True) -> None:
        """Keep an error or a warning: a declaration is analysed again after each INSERT that it reads."""
        found, document = self.errors if is_error else self.warnings, error.to_json()
        if document not in found:
            found.append(document)

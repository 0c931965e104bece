"""What the names of tables mean in a query."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from orchestrator.sql.columns.relations import Relation
from spark_runner.protocol.text import did_you_mean


@dataclass(frozen=True)
class Names:
    """Tables and views of the script, and around them definitions of WITH.

    A name of one part has no other meaning: the driver refuses that of a table in the current catalog.
    """

    relations: Mapping[str, Relation]
    outer: "Names | None" = None

    def find(self, name: str) -> Relation | None:
        """The columns of a table, view or definition; None if there is none of this name."""
        return next(
            (known.relations[name.lower()] for known in self._all if name.lower() in known.relations), None
        )

    def unknown(self, name: str) -> str:
        """The message for a name that `find` does not find."""
        hint = did_you_mean(name, (each for known in self._all for each in known.relations))
        return f"unknown table or view '{name}'{hint or '; declare it before'}"

    @property
    def _all(self) -> Iterator["Names"]:
        names: Names | None = self
        while names is not None:
            yield names
            names = names.outer

"""The tables and views that a script has declared so far, and which of them a change concerns."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from spark_runner.sql.grammar.references import catalog_names, names_in
from spark_runner.sql.locations import comparable, overlap
from spark_runner.sql.text.passage import Passage


class Declarations:
    """Steps of tables and views that can be read, in order."""

    def __init__(self) -> None:
        self.steps: list[Mapping[str, Any]] = []
        self._places: dict[int, str] = {}  # comparable locations by the id of the step of the table
        self._words: dict[
            int, frozenset[str] | None
        ] = {}  # possible table names in a view, by the id of its step
        self._of_catalogs: set[int] = set()  # the ids of steps of views that name tables of catalogs

    def add_table(self, step: Mapping[str, Any]) -> None:
        """Add a table."""
        self.steps.append(step)
        if step["location"]:
            self._places[id(step)] = comparable(step["location"])

    def add_view(self, step: Mapping[str, Any], query: Passage) -> None:
        """Add a view."""
        self.steps.append(step)
        self._words[id(step)] = names_in(query.tokens)
        if catalog_names(query.tokens):
            self._of_catalogs.add(id(step))

    def find(self, name: str) -> Mapping[str, Any]:
        """The step that gave a name its meaning; raises StopIteration for a table that is not readable."""
        return next(step for step in reversed(self.steps) if step["name"].lower() == name.lower())

    def at(self, location: str) -> set[int]:
        """The ids of the steps of tables whose files may be there."""
        place = comparable(location)
        return {key for key, known in self._places.items() if overlap(place, known)}

    def of_catalogs(self) -> Iterator[Mapping[str, Any]]:
        """The views that name tables of catalogs, and those that may read them, in order."""
        yield from self.reading(self._of_catalogs)

    def reading(self, changed: Collection[int]) -> Iterator[Mapping[str, Any]]:
        """The steps with these ids, and the views that may read them directly or through others, in order.

        A view reads the tables that its names referred to at its declaration. If a name is declared twice,
        the result is all tables and views.
        """
        if not changed:
            return
        names = {step["name"].lower() for step in self.steps}
        if len(names) < len(self.steps):
            yield from self.steps
            return
        found = set[str]()
        for step in self.steps:
            words = self._words.get(id(step), frozenset())
            if id(step) in changed or words is None or not found.isdisjoint(words):
                found.add(step["name"].lower())
                yield step

"""Fills in the references of a table's options, in the driver, right before a connector gets them."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from spark_runner.references.errors import Unresolved
from spark_runner.references.masks import Masks
from spark_runner.references.reference import InvalidReference, Reference, from_json
from spark_runner.references.sources import Sources


class Resolver:
    """Reads each value once per run, and masks it before anything can use it."""

    def __init__(self, sources: Sources | None = None, masks: Masks | None = None) -> None:
        self._sources = sources or Sources()
        self._masks = masks or Masks()
        self._values = dict[Reference, str]()

    def options(self, session: SparkSession, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of a table with their values; raises Unresolved, which names option and reference."""
        referring = step.get("references")
        if not referring:
            return step["options"]  # type: ignore[no-any-return]  # of a plan, which is JSON
        found = {name: self._text(name, pieces) for name, pieces in referring.items()}
        self._masks.apply(session)
        return {**step["options"], **found}

    def again(self, session: SparkSession) -> None:
        """Mask again in Spark, whose settings the script has changed."""
        self._masks.apply(session)

    def _text(self, name: str, document: object) -> str:
        try:
            pieces = from_json(document)
            return "".join(piece if isinstance(piece, str) else self._value(piece) for piece in pieces)
        except (InvalidReference, Unresolved) as error:
            raise Unresolved(f"option '{name}': {error}") from None

    def _value(self, reference: Reference) -> str:
        if reference not in self._values:
            value = self._sources.value(reference)
            self._masks.add([value])
            self._values[reference] = value
        return self._values[reference]

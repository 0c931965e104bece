"""The columns and constraints of a table."""

from dataclasses import dataclass, field
from enum import StrEnum

from spark_runner.sql.text.passage import Passage


class Violation(StrEnum):
    """What happens to a row that an expectation does not accept."""

    FAIL = "fail"
    DROP_ROW = "drop row"
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class ComputedColumn:
    """`name AS expression`, or `name type GENERATED ALWAYS AS (expression)`: seen by readers, not stored."""

    name: str
    expression: Passage
    type: Passage | None = None  # that of the expression if it is None


@dataclass(frozen=True)
class MetadataColumn:
    """`name type METADATA [FROM 'key']`: what the source knows of a row, such as its file."""

    name: str
    type: Passage
    key: str
    key_offset: int


@dataclass(frozen=True)
class Watermark:
    """`WATERMARK FOR column AS expression`: how late rows may be, for streams."""

    column: str
    expression: Passage
    offset: int


@dataclass(frozen=True)
class Expectation:
    """`CONSTRAINT name EXPECT (condition) ON VIOLATION action`."""

    name: str
    condition: Passage
    action: Violation
    action_offset: int


@dataclass
class Columns:
    """The columns and constraints of CREATE TABLE, in the order in which they are declared."""

    passage: Passage
    names: tuple[str, ...] = ()  # of all columns
    stored: dict[str, Passage] = field(default_factory=dict)  # name -> definition, for Spark
    computed: list[ComputedColumn] = field(default_factory=list)
    metadata: list[MetadataColumn] = field(default_factory=list)
    primary_key: tuple[str, ...] = ()
    watermark: Watermark | None = None
    expectations: list[Expectation] = field(default_factory=list)

    def ddl(self) -> Passage:
        """The definitions of the stored columns, as Spark reads them."""
        constraints = self.primary_key or self.watermark or self.expectations
        if len(self.names) == len(self.stored) and not constraints:
            return self.passage
        definitions = list[Passage | str]()
        for definition in self.stored.values():
            definitions += (", ", definition)
        return self.passage.rebuilt(definitions[1:])

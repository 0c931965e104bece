"""Decides whether a query of some rows of a table gives the part of its result that these rows cause.

Then the results for parts of the table add up to that for the whole table: `Q(a + b) = Q(a) + Q(b)`.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from spark_runner.connectors.java_classes import items
from spark_runner.protocol.errors import SparkRunnerError

# The operators of Spark's analysed plans that look at one row at a time, or at the order of rows.
_ROW_BY_ROW = {
    *("Project", "Filter", "SubqueryAlias", "View", "Generate", "LateralJoin", "EventTimeWatermark"),
    *("Sort", "Repartition", "RepartitionByExpression", "RebalancePartitions", "ResolvedHint"),
    *("UnresolvedHint", "PipeOperator"),
}
# The sides of a join on which each row has a result of its own.
_SIDES = {
    **dict.fromkeys(("Inner", "Cross"), (True, True)),
    **dict.fromkeys(("LeftOuter", "LeftSemi", "LeftAnti"), (True, False)),
    "RightOuter": (False, True),
}
_WORDS = {
    "Aggregate": "it aggregates or groups rows",
    "Distinct": "it has DISTINCT",
    "Deduplicate": "it has DISTINCT",
    "Window": "it has a window function",
    "GlobalLimit": "it has LIMIT",
    "LocalLimit": "it has LIMIT",
    "Offset": "it has OFFSET",
    "Except": "it has EXCEPT",
    "Intersect": "it has INTERSECT",
    "Pivot": "it has PIVOT",
    "Sample": "it samples rows",
}


class NotRowByRow(SparkRunnerError):
    """The result of a query for some rows is not a part of its result for all rows."""


def reads_row_by_row(frame: DataFrame, name: str) -> bool:
    """Whether a query reads the view `name`, in lower case; raises NotRowByRow if it combines its rows."""
    return _Reader(name).reads(analyzed(frame))


def tables_read(frame: DataFrame) -> set[str]:
    """The names of all views that a query reads, in lower case."""
    return {found for node in nodes(analyzed(frame)) if (found := _view(node))}


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._shared = dict[int, bool]()  # whether a common table expression reads the view, by its id

    def reads(self, node: Any) -> bool:
        """Whether a plan reads the view; raises NotRowByRow."""
        for subquery in items(node.subqueries()):
            if self._mentions(subquery):
                raise NotRowByRow("a subquery of it reads the table")
        if _view(node) == self._name:
            return True
        match node.nodeName():
            case "CTERelationRef":
                return self._shared.get(node.cteId(), False)
            case "WithCTE":
                for each in items(node.cteDefs()):
                    self._shared[each.id()] = self.reads(each.child())
                return self.reads(node.plan())
        parts = [self.reads(each) for each in items(node.children())]
        if any(parts):
            self._check(node, parts)
        return any(parts)

    def _mentions(self, plan: Any) -> bool:
        found = list(nodes(plan))
        shared = (each.cteId() for each in found if each.nodeName() == "CTERelationRef")
        return any(_view(each) == self._name for each in found) or any(map(self._shared.get, shared))

    def _check(self, node: Any, parts: list[bool]) -> None:
        """Raise NotRowByRow for an operator that combines rows; `parts`: which inputs read the view."""
        match kind := node.nodeName():
            case "Join":
                self._check_join(node, parts)
            case "Union":
                if not all(parts):
                    raise NotRowByRow("its UNION adds the rows of other tables again")
            case _:
                if kind not in _ROW_BY_ROW:
                    raise NotRowByRow(_WORDS.get(kind, f"its plan has the operator {kind}"))

    def _check_join(self, node: Any, parts: list[bool]) -> None:
        kind = node.joinType().toString()
        if all(parts):
            raise NotRowByRow("it joins the table with itself")
        # Of a side that keeps its rows without a match, the other tables would be added again.
        left, right = _SIDES.get(kind, (False, False))
        if not ((parts[0] and left) or (parts[1] and right)):
            raise NotRowByRow(f"its join ({kind}) gives rows for what it does not find in the table")


def analyzed(frame: DataFrame) -> Any:
    """The plan of a frame, with the meaning of its names."""
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - PySpark has no public access to plans


def _view(node: Any) -> str:
    return str(node.desc().identifier().table()).lower() if node.nodeName() == "View" else ""


def nodes(node: Any) -> Iterator[Any]:
    """All operators of a plan, with those of its subqueries."""
    yield node
    for each in (*items(node.children()), *items(node.subqueries())):
        yield from nodes(each)

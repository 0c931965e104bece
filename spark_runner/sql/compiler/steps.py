"""The steps of a plan while it is made."""

from dataclasses import dataclass, field
from typing import Any

from spark_runner.sql.text.built_ins import has_mark
from spark_runner.sql.text.passage import Passage

PLAN_VERSION = 3
OLDEST_PLAN_VERSION = 2
_OLDEST_STEPS = ("set", "table", "view", "insert")


@dataclass
class Steps:
    """The steps, and the texts that they share."""

    made: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)  # pasted texts and their indices in the plan
    version: int = OLDEST_PLAN_VERSION  # the oldest one that has all parts of this plan
    needs_own_jvm: bool = False  # a step may reach the data of other jobs in the same JVM, or outlive its run

    def add(self, kind: str, passage: Passage, **facts: Any) -> dict[str, Any]:
        """Append a step at the place of `passage`."""
        if kind not in _OLDEST_STEPS or has_mark(passage.text):
            self.need_new_driver()
        line, column = passage.position()
        step = {"kind": kind, "line": line, "column": column, **facts}
        self.made.append(step)
        return step

    def need_new_driver(self) -> None:
        """Older drivers would not see a part of this plan."""
        self.version = PLAN_VERSION

    @property
    def last(self) -> int:
        """The index of the last step."""
        return len(self.made) - 1

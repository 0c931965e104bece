"""The declarations that are repeated when an INSERT has changed files: tables there, and their readers."""

from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_runner.sql.compiler.compile import compile_script
from spark_runner.sql.execution.script_session import ScriptSession


class _Conf:
    def set(self, _name: str, _value: str) -> None:
        pass


class _Session:
    conf = _Conf()


class Declared(ScriptSession):
    """Without Spark: records the declarations."""

    def __init__(self, script: str) -> None:
        plan = compile_script(script, file="s.sql", base_dir="/", variables={})
        self.seen: list[str] = []
        super().__init__(_Session(), plan, lambda _phase: None)  # type: ignore[arg-type]  # a stand-in

    def run(self) -> None:
        for step in self.steps:
            self.step(step)

    def declare(self, step: Any) -> None:
        self.seen.append(step["name"])

    def insert(self, step: Any) -> None:
        self.seen.clear()
        self.refresh(self.tables[step["target"].lower()]["location"])

    def table_frame(self, _step: Any) -> DataFrame | None:
        return None


TABLES = "".join(f"CREATE TABLE {name} USING csv OPTIONS (path '{name}');" for name in ("a", "b", "c"))


@pytest.mark.parametrize(
    ("views", "again"),
    [
        ("", ["b"]),
        ("CREATE VIEW v AS SELECT * FROM a;", ["b"]),
        ("CREATE VIEW v AS SELECT * FROM B; CREATE VIEW w AS SELECT * FROM `V`;", ["b", "v", "w"]),
        ('CREATE VIEW v AS SELECT * FROM a limit, "b";', ["b", "v"]),
        ("CREATE VIEW v AS SELECT * FROM IDENTIFIER('' || 'b');", ["b", "v"]),
        ("CREATE VIEW v AS SELECT * FROM csv.`/b`;", ["b", "v"]),
        ("CREATE OR REPLACE VIEW c AS SELECT * FROM a;", ["a", "b", "c", "c"]),
    ],
)
def test_tables_with_other_files_and_the_views_that_may_read_them_are_declared_again(
    views: str, again: list[str]
) -> None:
    names = Declared(
        f"{TABLES}{views} CREATE TABLE shown USING print; INSERT INTO b SELECT 1; INSERT INTO shown TABLE b;"
        "INSERT INTO b SELECT 2"
    )
    names.run()
    assert names.seen == again


def test_each_of_many_inserts_declares_no_more_than_what_it_changes() -> None:
    many = 240
    script = "".join(f"CREATE TABLE t{n} USING csv OPTIONS (path 'd{n}');" for n in range(many))
    script += "CREATE TABLE shown USING print;"
    script += "".join(f"INSERT INTO shown TABLE t{n}; INSERT INTO t{n} SELECT 1;" for n in range(many))
    declared: list[str] = []

    class Counted(Declared):
        def declare(self, step: Any) -> None:
            declared.append(step["name"])

        def insert(self, step: Any) -> None:
            if location := self.tables[step["target"].lower()]["location"]:
                self.refresh(location)

    Counted(script).run()
    assert len(declared) == 2 * many

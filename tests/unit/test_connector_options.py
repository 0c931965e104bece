import subprocess
import sys

import pytest

from spark_runner.connectors.errors import OptionError
from spark_runner.connectors.options import options_of, to_plan, validate
from spark_runner.connectors.parts import Parts
from spark_runner.connectors.registry import BUILT_IN


def test_insert_into_appends_unless_a_table_says_otherwise() -> None:
    for connector in ("parquet", "csv", "json"):
        assert to_plan(validate(connector, {"path": "x"}))["mode"] == "append"


def test_all_options_of_csv_are_read() -> None:
    options = {
        "PATH": "x",
        "mode": "append",
        "header": "false",
        "delimiter": "\t",
        "nullValue": "-",
        "compression": "gzip",
        "partition-by": "a, b",
    }
    assert to_plan(validate("csv", options)) == {
        "path": "x",
        "mode": "append",
        "header": False,
        "delimiter": "\t",
        "null_value": "-",
        "compression": "gzip",
        "partition_by": ["a", "b"],
    }


def test_options_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        validate("print", {}).limit = 3  # type: ignore[attr-defined]  # the point of the test


@pytest.mark.parametrize(
    ("connector", "options", "option", "fault", "message"),
    [
        (
            "parquet",
            {"pth": "x"},
            "pth",
            "name",
            "unknown option 'pth' of connector 'parquet'; did you mean 'path'?",
        ),
        ("csv", {"path": "x", "heder": "1"}, "heder", "name", "did you mean 'header'?"),
        ("csv", {"path": "x", "null_vlue": ""}, "null_vlue", "name", "did you mean 'null_value'?"),
        (
            "print",
            {"wxyz": "x"},
            "wxyz",
            "name",
            "unknown option 'wxyz' of connector 'print'; it takes limit",
        ),
        (
            "json",
            {"path": "x", "header": "true"},
            "header",
            "name",
            "unknown option 'header' of connector 'json'",
        ),
        ("csv", {"path": "x", "nullValue": "", "null_value": ""}, "null_value", "name", "given twice"),
        ("text", {"path": "x", "target_file_size": "much"}, "target_file_size", "value", "cannot be 'much'"),
        ("orc", {"path": "/x", "s3_region": "r"}, "s3_region", "name", "is of paths s3a://BUCKET/..."),
        ("csv", {"path": "s3a://b/x", "s3_access_key": "k"}, "s3_access_key", "name", "belong together"),
        ("parquet", {}, "", "name", "connector 'parquet' needs option 'path'"),
        ("inline", {}, "", "name", "connector 'inline' needs option 'rows'"),
        ("parquet", {"path": ""}, "path", "value", "option 'path' of connector 'parquet' cannot be ''"),
        ("parquet", {"path": "x", "MODE": "replace"}, "MODE", "value", "'append' or 'error'"),
        ("csv", {"path": "x", "mode": "overwrite"}, "mode", "value", "write INSERT OVERWRITE to replace"),
        ("parquet", {"path": "x", "compression": "bzip2"}, "compression", "value", "cannot be 'bzip2'"),
        ("csv", {"path": "x", "compression": "zstd"}, "compression", "value", "cannot be 'zstd'"),
        ("csv", {"path": "x", "header": "perhaps"}, "header", "value", "valid boolean"),
        ("csv", {"path": "x", "delimiter": ""}, "delimiter", "value", "at least 1 character"),
        ("csv", {"path": "x", "delimiter": "||"}, "delimiter", "value", "at most 1 character"),
        ("csv", {"path": "x", "escape": "\\\\"}, "escape", "value", "at most 1 character"),
        ("csv", {"path": "x", "escape": "a"}, "escape", "value", "cannot precede a quote"),
        ("csv", {"path": "x", "escape": "\n"}, "escape", "value", "cannot precede a quote"),
        ("csv", {"path": "x", "escape": "\N{GRINNING FACE}"}, "escape", "value", "cannot precede a quote"),
        ("csv", {"path": "x", "escape": ","}, "escape", "value", "choose different characters"),
        ("csv", {"path": "x", "partition_by": "a,,b"}, "partition_by", "value", "at least 1 character"),
        ("print", {"limit": "0"}, "limit", "value", "greater than or equal to 1"),
        ("print", {"limit": "all"}, "limit", "value", "valid integer"),
        ("inline", {"rows": "[[1,]]"}, "rows", "value", "not JSON"),
        ("inline", {"rows": "[1, 2]"}, "rows", "value", "a list of rows is needed"),
        ("inline", {"rows": '{"a": 1}'}, "rows", "value", "a list of rows is needed"),
    ],
)
def test_a_wrong_option_is_named_with_what_would_be_right(
    connector: str, options: dict[str, str], option: str, fault: str, message: str
) -> None:
    with pytest.raises(OptionError) as caught:
        validate(connector, options)
    assert message in str(caught.value)
    assert (caught.value.option, caught.value.fault) == (option, fault)


@pytest.mark.parametrize(
    ("connector", "options", "columns", "message"),
    [
        ("csv", {"path": "x", "partition_by": "moth"}, ["day", "month"], "did you mean 'month'?"),
        ("inline", {"rows": "[[1]]"}, [], "needs declared columns"),
        ("inline", {"rows": "[[1, 2], [1]]"}, ["a", "b"], "row 2 has 1 values for 2 columns"),
    ],
)
def test_options_that_do_not_fit_the_columns_are_refused(
    connector: str, options: dict[str, str], columns: list[str], message: str
) -> None:
    with pytest.raises(OptionError, match=message.replace("?", r"\?")):
        validate(connector, options, columns)


def test_options_that_fit_the_columns_pass() -> None:
    validate("csv", {"path": "x", "partition_by": "Month"}, ["day", "month"])
    validate("csv", {"path": "x", "partition_by": "month"}, [])
    validate("inline", {"rows": '[[1, null], [2, "b"]]'}, ["a", "b"])


@pytest.mark.parametrize("name", BUILT_IN)
def test_all_parts_of_a_connector_can_be_loaded(name: str) -> None:
    connector, parts = BUILT_IN[name], Parts({})
    assert options_of(name).__doc__
    assert connector.source or connector.sink
    assert not connector.source or callable(parts.source(name).read)
    assert not connector.sink or callable(parts.sink(name).write)


def test_the_driver_side_needs_no_pydantic() -> None:
    code = "import sys, spark_runner.sql.execution.execution; sys.exit('pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)

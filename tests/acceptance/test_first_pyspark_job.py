"""The steps of docs/first-pyspark-job.md, with the files as they are shown."""

import re
from pathlib import Path

import pytest

from tests.acceptance.support import SPARK_TIMEOUT_S, Shell, assert_no_traceback, assert_nothing_is_left

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PAGE = (Path(__file__).parents[2] / "docs" / "first-pyspark-job.md").read_text("utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def shown(language: str, begin: str) -> str:
    """The only block of this language that begins so."""
    (text,) = (text for name, text in BLOCKS if name == language and text.startswith(begin))
    return text


def test_the_files_and_commands_of_the_page_give_the_output_that_it_shows(
    shell: Shell, process_mark: str
) -> None:
    shell.write("orders.csv", shown("", "order_id"))
    shell.write("totals.py", shown("python", "import sys"))
    shell.write("totals.yaml", shown("yaml", "name: totals"))
    commands = [text.split()[2:] for name, text in BLOCKS if not name and text.startswith("$ orchestrator")]
    assert commands == [["run", "totals.py"], ["run", "totals.yaml"]]
    for command, arguments in zip(commands, ("[]", "['--day', '2026-01-05']"), strict=True):
        done = shell.type(*command, timeout=SPARK_TIMEOUT_S)
        assert done.code == 0, done.stderr
        assert_no_traceback(done.stderr)
        assert done.stdout.strip() == shown("", "+---").strip().replace("[]", arguments)
        assert f"arguments: {arguments}" in PAGE
        assert list((shell.directory / "out" / "totals").glob("part-*.parquet"))
    assert_nothing_is_left(process_mark)

"""What a user sees of an exception of a Python program: its line, and a traceback that begins there."""

import linecache
import re
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException

from spark_runner.driver.outcome import of_error
from spark_runner.driver.python_error import PythonError, UserCode, described
from spark_runner.protocol.errors import EXCEPTION_LINE

DEFINED = "/home/ada/jobs"


def ended(text: str, folder: Path, **more: object) -> tuple[BaseException, UserCode]:
    """The exception with which a program ended, as the driver runs it, and the program."""
    text = textwrap.dedent(text).lstrip("\n")
    script = str(folder / "job.py")
    linecache.cache[script] = (len(text), None, text.splitlines(keepends=True), script)
    code = UserCode("job.py", text, str(folder), script)
    try:
        exec(compile(text, script, "exec"), {"__name__": "__main__", **more})  # noqa: S102 - as the driver does
    except BaseException as error:  # noqa: BLE001 - likewise
        return error, code
    pytest.fail("the program did not fail")


def seen(text: str, folder: Path, **more: object) -> PythonError:
    """What its user sees."""
    found = described(*ended(text, folder, **more))
    assert found is not None
    return found


FAILS = """
def parse(text):
    return int(text)

parse("x")
"""


def test_an_error_begins_with_the_line_of_the_program_and_the_line_itself(tmp_path: Path) -> None:
    found = seen(FAILS, tmp_path)
    assert found.type == "ValueError"
    assert found.message == (
        "job.py:2: ValueError: invalid literal for int() with base 10: 'x'\n    return int(text)"
    )
    assert found.stack.splitlines() == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path}/job.py", line 4, in <module>',
        '    parse("x")',
        f'  File "{tmp_path}/job.py", line 2, in parse',
        "    return int(text)",
        "ValueError: invalid literal for int() with base 10: 'x'",
    ]


def test_a_program_that_runs_from_a_copy_has_the_path_of_its_definition(tmp_path: Path) -> None:
    error, copied = ended(FAILS, tmp_path)
    found = described(error, UserCode("job.py", copied.text, DEFINED, copied.script))
    assert found is not None
    assert f'File "{DEFINED}/job.py", line 2, in parse' in found.stack
    assert str(tmp_path) not in found.stack + found.message


def test_an_error_in_an_imported_file_is_shown_with_the_name_of_that_file(tmp_path: Path) -> None:
    (tmp_path / "own_helpers.py").write_text("def half(x):\n    return 1 / x\n")
    sys.path.insert(0, str(tmp_path))
    try:
        found = seen("import own_helpers\nown_helpers.half(0)\n", tmp_path)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("own_helpers", None)
    assert found.message == "own_helpers.py:2: ZeroDivisionError: division by zero\n    return 1 / x"
    assert re.findall(r'File "([^"]+)"', found.stack) == [
        f"{tmp_path}/job.py",
        f"{tmp_path}/own_helpers.py",
    ]


def test_a_file_of_py_files_has_the_path_that_the_definition_names(tmp_path: Path) -> None:
    copies = tmp_path / "userFiles"
    copies.mkdir()
    (copies / "own_parts.py").write_text("def half(x):\n    return 1 / x\n")
    sys.path.insert(0, str(copies))
    try:
        error, code = ended("import own_parts\nown_parts.half(0)\n", tmp_path)
    finally:
        sys.path.remove(str(copies))
        sys.modules.pop("own_parts", None)
    py_files = {"own_parts.py": "/home/ada/lib/own_parts.py"}
    found = described(error, UserCode("job.py", code.text, DEFINED, code.script, py_files))
    assert found is not None
    assert found.message.startswith("/home/ada/lib/own_parts.py:2: ZeroDivisionError")
    assert 'File "/home/ada/lib/own_parts.py", line 2, in half' in found.stack


def test_an_error_inside_a_library_is_shown_at_the_line_that_called_it(tmp_path: Path) -> None:
    found = seen("import json\n\njson.loads('{')\n", tmp_path)
    assert found.message.startswith("job.py:3: JSONDecodeError: Expecting property name")
    assert found.message.endswith("\n    json.loads('{')")
    assert "json/decoder.py" in found.stack  # a library may say more, and plumbing does not


def test_frames_of_the_driver_and_of_pyspark_are_left_out(tmp_path: Path) -> None:
    text = "from pyspark.sql.types import _parse_datatype_json_string as parse\nparse(None)\n"
    found = seen(text, tmp_path)
    assert found.message.startswith("job.py:2: TypeError")
    assert "pyspark" not in found.stack.split("parse(None)")[1].split("TypeError")[0]


def test_causes_come_before_the_exceptions_that_they_caused(tmp_path: Path) -> None:
    text = """
    try:
        {}["day"]
    except KeyError as error:
        raise RuntimeError("no day") from error
    """
    found = seen(text, tmp_path)
    assert found.message == 'job.py:4: RuntimeError: no day\n    raise RuntimeError("no day") from error'
    first, second = found.stack.split(
        "\nThe above exception was the direct cause of the following exception:\n"
    )
    assert first.endswith("KeyError: 'day'\n")
    assert second.endswith("RuntimeError: no day\n")


def test_an_exception_that_caused_itself_is_shown_once(tmp_path: Path) -> None:
    found = seen(
        "e = ValueError('a'); e.__cause__ = KeyError('b'); e.__cause__.__cause__ = e; raise e", tmp_path
    )
    assert found.stack.count("ValueError: a") == 1


def test_a_syntax_error_of_an_imported_file_has_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "own_broken.py").write_text("x = 1\nif x print(x)\n")
    sys.path.insert(0, str(tmp_path))
    try:
        found = seen("import own_broken\n", tmp_path)
    finally:
        sys.path.remove(str(tmp_path))
    assert found.message == "own_broken.py:2: SyntaxError: invalid syntax\n    if x print(x)"


def test_a_missing_package_says_where_it_is_installed(tmp_path: Path) -> None:
    found = seen("import no_such_package.part\n", tmp_path)
    head, line, remedy = found.message.split("\n")
    assert head == "job.py:1: ModuleNotFoundError: No module named 'no_such_package'"
    assert line.strip() == "import no_such_package.part"
    assert "requirements: [no_such_package]" in remedy
    assert "the Python of the pool" in remedy
    assert "spark.py_files" in remedy


def test_a_missing_module_whose_package_has_another_name_names_the_package(tmp_path: Path) -> None:
    text = "raise ModuleNotFoundError(\"No module named 'sklearn'\", name='sklearn.svm')\n"
    assert "requirements: [scikit-learn]" in seen(text, tmp_path).message


REMOTE = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 3386, in main
    process()
  File "{script}", line 2, in parse
    return int(text)
           ^^^^^^^^^
{last}

	at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.read(PythonRunner.scala:645)
	at java.base/java.lang.Thread.run(Thread.java:840)
"""


def of_task(last: str, folder: Path) -> PythonError:
    """The error of a task that ended with this line."""
    text = "def parse(text):\n    return int(text)\n\nraise PythonException(message=words)\n"
    words = REMOTE.format(script=folder / "job.py", last=last)
    return seen(text, folder, PythonException=PythonException, words=words)


def test_an_error_of_a_task_is_that_of_the_function_and_names_the_action(tmp_path: Path) -> None:
    found = of_task("ValueError: invalid literal for int() with base 10: 'x'", tmp_path)
    assert (found.type, found.message) == (
        "ValueError",
        "job.py:2: ValueError: invalid literal for int() with base 10: 'x'\n    return int(text)",
    )
    task, action = found.stack.split("\nA task of Spark raised it, for this action of the program:\n\n")
    assert task.splitlines()[1:3] == [f'  File "{tmp_path}/job.py", line 2, in parse', "    return int(text)"]
    assert f'File "{tmp_path}/job.py", line 4, in <module>' in action
    assert "worker.py" not in found.stack
    assert "org.apache" not in found.stack


def test_a_message_of_a_task_keeps_its_lines(tmp_path: Path) -> None:
    found = of_task("own.errors.BadRow: first\nsecond", tmp_path)
    assert found.type == "BadRow"
    assert found.message == "job.py:2: BadRow: first\nsecond\n    return int(text)"


def test_a_module_beside_the_program_that_a_task_does_not_find_belongs_in_py_files(tmp_path: Path) -> None:
    (tmp_path / "own_helpers.py").write_text("")
    found = of_task("ModuleNotFoundError: No module named 'own_helpers'", tmp_path)
    assert "py_files: [own_helpers.py]" in found.message
    (tmp_path / "own_package").mkdir()
    found = of_task("ModuleNotFoundError: No module named 'own_package.part'", tmp_path)
    assert "py_files: [own_package.zip]" in found.message


def test_an_error_of_the_analysis_keeps_its_position_and_not_the_plan(tmp_path: Path) -> None:
    words = (
        "[NO] There is no view `t`. SQLSTATE: 42P01; line 2 pos 5;\n"
        "'Project ['nope]\n+- 'UnresolvedRelation [t], [], false\n"
    )
    found = seen(
        "raise AnalysisException(message=words)\n", tmp_path, AnalysisException=AnalysisException, words=words
    )
    assert found.message.splitlines() == [
        "job.py:1: AnalysisException: [NO] There is no view `t`. SQLSTATE: 42P01; line 2 pos 5",
        "    raise AnalysisException(message=words)",
    ]
    assert "Project" not in found.stack


# Hostile programs


def test_a_deep_recursion_and_a_huge_message_are_bounded(tmp_path: Path) -> None:
    text = """
    import sys
    sys.setrecursionlimit(60_000)
    def down(n):
        if n == 0:
            raise ValueError("x" * 10_000_000)
        down(n - 1)
    down(5_000)
    """
    error, code = ended(text, tmp_path)
    found = described(error, code)
    assert found is not None
    assert len(found.message) < 4_000
    assert len(found.stack) < 8_000
    assert "more frames]" in found.stack
    assert found.message.startswith("job.py:5: ValueError: xxx")
    assert found.message.endswith('raise ValueError("x" * 10_000_000)')


@pytest.mark.parametrize(
    "text",
    [
        "class Odd(Exception):\n    def __str__(self):\n        raise OSError\nraise Odd",
        "e = SyntaxError('a'); e.filename = 5; raise e",
        "e = ModuleNotFoundError('a'); e.name = 7; raise e",
        "raise ExceptionGroup('all', [ValueError('a'), KeyError('b')])",
        "raise ValueError('\\udc80')",
        "class Odd(BaseException):\n    __module__ = 5\nraise Odd(b'\\xff')",
    ],
)
def test_an_odd_exception_is_an_outcome_all_the_same(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error, code = ended(text, tmp_path)
    outcome = of_error(error, code=code)
    assert outcome["state"] == "failed"
    assert outcome["error"]["message"]
    outcome["error"]["message"].encode()
    assert capsys.readouterr().err


def test_secrets_are_masked_in_the_line_and_in_the_message(tmp_path: Path) -> None:
    text = "password = 'hunter2hunter2'; raise ValueError('password=hunter2hunter2')\n"
    found = seen(text, tmp_path)
    assert "hunter2" not in found.message + found.stack


def test_an_error_outside_of_the_program_keeps_its_whole_traceback(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("x")
    assert described(raised.value, UserCode("job.py", "", DEFINED, f"{tmp_path}/job.py")) is None


def logged(error: BaseException, code: UserCode, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of the traceback that the driver writes to its log."""
    of_error(error, code=code)
    first, *lines = capsys.readouterr().err.splitlines()
    assert first == EXCEPTION_LINE, "by which `run` knows what follows"
    return lines


def test_the_traceback_in_the_log_begins_with_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert logged(*ended(FAILS, tmp_path), capsys)[:3] == [
        "Traceback (most recent call last):",
        f'  File "{tmp_path}/job.py", line 4, in <module>',
        '    parse("x")',
    ]


def test_a_syntax_error_in_the_log_is_as_python_prints_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert logged(*ended("def broken(:\n", tmp_path), capsys)[0] == f'  File "{tmp_path}/job.py", line 1'


def test_a_traceback_without_a_line_of_the_program_is_whole_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("x")
    lines = logged(raised.value, UserCode("job.py", "", DEFINED, f"{tmp_path}/job.py"), capsys)
    assert lines[1].startswith(f'  File "{__file__}", line ')

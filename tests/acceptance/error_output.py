"""The output of an error: few lines on stderr, no traceback, nothing on stdout."""

from tests.acceptance.support import Ended, assert_no_traceback

MOST_LINES = 6
"""Advice fits in one line; a position in a script takes three."""


def assert_error(ended: Ended, code: int, *words: str) -> None:
    """The exit code is `code`, and stderr contains all `words`."""
    assert ended.code == code, ended
    assert ended.stdout == ""
    assert_no_traceback(ended.stderr)
    lines = ended.stderr.strip().splitlines()
    assert sum(line.startswith("error: ") for line in lines) == 1, ended.stderr
    assert len(lines) <= MOST_LINES, ended.stderr
    missing = [word for word in words if word not in ended.stderr]
    assert not missing, (missing, ended.stderr)

"""What an error says: few lines on stderr, none of them Python's, nothing on stdout."""

from tests.acceptance.support import Ended, assert_no_traceback

MOST_LINES = 6
"""What to do fits in one line; a place in a script takes three."""


def assert_error(ended: Ended, code: int, *words: str) -> None:
    """The exit code is this, and stderr names all these."""
    assert ended.code == code, ended
    assert ended.stdout == ""
    assert_no_traceback(ended.stderr)
    lines = ended.stderr.strip().splitlines()
    assert sum(line.startswith("error: ") for line in lines) == 1, ended.stderr
    assert len(lines) <= MOST_LINES, ended.stderr
    missing = [word for word in words if word not in ended.stderr]
    assert not missing, (missing, ended.stderr)

"""The corpora: scripts, and for wrong ones what lint must find in them."""

import re
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent
_SEPARATOR = "\n----\n"
_EXPECTED = re.compile(r"^--> (\d+):(\d+) (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class WrongScript:
    """A script behind the declarations of the corpus, and its findings with lines from its own begin."""

    tables: str
    text: str
    findings: tuple[tuple[int, int, str], ...]


def wrong_scripts() -> list[WrongScript]:
    """All scripts of wrong.sql."""
    tables, *scripts = (_FOLDER / "wrong.sql").read_text("utf-8").split(_SEPARATOR)
    return [
        WrongScript(
            f"{tables}\n",
            _EXPECTED.sub("", script).strip(),
            tuple((int(line), int(column), message) for line, column, message in _EXPECTED.findall(script)),
        )
        for script in scripts
    ]


def right_scripts() -> list[str]:
    """All scripts of right.sql, each with the declarations of the corpus."""
    tables, *scripts = (_FOLDER / "right.sql").read_text("utf-8").split(_SEPARATOR)
    return [f"{tables}\n{script}" for script in scripts]

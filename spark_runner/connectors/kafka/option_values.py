"""Types of values of options: lists of names, words in any case, marks."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from spark_runner.connectors.options import Name

# A list can have it. It is as long as the name of a job. Built-in variables, which differ between runs, begin
# with a character of the private use.
_MARK = re.compile(r"[^\s,;\x00-\x1f\x7f\ue000-\uf8ff]{1,128}")


def _listed(value: object) -> object:
    """Names between commas or, as in Flink, semicolons."""
    return [name.strip() for name in value.replace(";", ",").split(",")] if isinstance(value, str) else value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _mark(value: str) -> str:
    if value and not _MARK.fullmatch(value):
        raise ValueError("a mark is 1 to 128 characters without spaces, ',' and ';', the same in each run")
    return value


Listed = Annotated[tuple[Name, ...], BeforeValidator(_listed)]
AnyCase = BeforeValidator(_lower)
Mark = Annotated[str, AfterValidator(_mark)]
"""The mark of written records; empty for none."""
Marks = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(_mark)], ...], BeforeValidator(_listed)
]

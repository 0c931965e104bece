"""The key of a run among those of its name: its program, and the class of its parameters."""

import re
from dataclasses import dataclass
from hashlib import sha256

from orchestrator.logs.record.redaction import Redactor, secrets_of
from orchestrator.logs.record.secret_patterns import has_hint, mask_patterns
from orchestrator.model.definition import Definition
from queues import encode

NO_PARAMETERS = "-"

_CODE_DIGITS, _PARAMETERS_DIGITS = 12, 8  # hexadecimal; keys of one name only have to differ from each other
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class Key:
    """What runs of one name have in common that are compared with each other."""

    code: str
    parameters: str

    @classmethod
    def of(cls, definition: Definition) -> "Key":
        """The key of the runs of a definition."""
        return cls(code_of(definition), definition.tuning.parameters or parameters_of(definition))


def code_of(definition: Definition) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the program.

    A program is the text of a script, that of a Python program, or the path and the main class of a jar: a
    worker may be unable to read the jar itself. Text that looks like a secret is masked first, so a new
    password in a script makes no new program, and the digits are no test for guessed passwords.
    """
    if definition.jar:
        program = ["jar", definition.jar, definition.main_class]
    elif definition.python:
        program = ["python", definition.python]
    else:
        program = ["script", definition.script]
    return _digest([_masked(text) for text in program])[:_CODE_DIGITS]


def parameters_of(definition: Definition) -> str:
    """The first 8 hexadecimal digits of the SHA-256 of variables and arguments; `-` without any.

    Each run of digits counts as one 0: runs for other days or batches have the same parameters. Secrets are
    masked, by the names of variables and options and by their form. Only the definition decides what is one,
    so that each worker calculates the same digits.
    """
    given = definition.model_dump(include={"variables", "arguments"}, mode="json")
    if not any(given.values()):
        return NO_PARAMETERS
    shown = Redactor(secrets_of(given)).document(given)
    variables = {name: _NUMBER.sub("0", value) for name, value in sorted(shown["variables"].items())}
    return _digest([variables, [_NUMBER.sub("0", each) for each in shown["arguments"]]])[:_PARAMETERS_DIGITS]


def _masked(text: str) -> str:
    return mask_patterns(text) if has_hint(text) else text


def _digest(value: object) -> str:
    return sha256(encode({"": value})).hexdigest()

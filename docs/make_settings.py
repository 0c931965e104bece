"""Makes the tables of docs/settings.md from the model of the settings."""

import os
from typing import get_args, get_origin

from pydantic import BaseModel

from docs.fields import sections
from docs.generated import Part, code
from orchestrator.config.settings import Settings
from orchestrator.config.sources import PREFIX, names

_TEXTS = {"checkpoints"}  # a table that may also be one text


def made() -> str:
    """All settings, and the fields of the tables in them."""
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):  # the defaults are those of a host without them
        os.environ.pop(name, None)
    return sections(Settings, _note)


def _note(name: str) -> str:
    """What is special about the variable of a setting: tables with keys of any value have none."""
    annotation = Settings.model_fields[name].annotation
    value = get_args(annotation)[-1] if get_origin(annotation) is dict else BaseModel
    is_table = isinstance(value, type) and issubclass(value, BaseModel)
    if not (is_table or name in _TEXTS):
        return "only in the settings file"
    variable = names(Settings, name)[-1]
    return "" if variable == PREFIX + name.upper() else f"variable {code(variable)}"


PART = Part(__file__, "settings.md", "orchestrator/config/settings.py", made)

if __name__ == "__main__":
    PART.write()

"""The base of all parts of a definition, and the conversion of YAML values to text."""

from pydantic import BaseModel, ConfigDict


class DefinitionPart(BaseModel):
    """An immutable part that accepts no unknown field."""

    # The validator of the whole definition checks its parts, so none builds a validator of its own. Their
    # defaults are constructed without one, too.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)


def texts(value: object) -> object:
    """A mapping with its values as text; numbers and booleans become the text that Spark expects."""
    return {str(key): text(item) for key, item in value.items()} if isinstance(value, dict) else value


def text(item: object) -> str:
    """One value as text; raises ValueError unless it is text, a number or a boolean."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, str | int | float):
        return str(item)
    message = (
        f"text, a number, true or false is needed, not {'nothing' if item is None else type(item).__name__}"
    )
    raise ValueError(message)

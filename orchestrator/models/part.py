"""What all parts of a definition have in common."""

from pydantic import BaseModel, ConfigDict


class DefinitionPart(BaseModel):
    """Immutable, and nothing in it that is not known."""

    # Parts are checked as parts of the whole, which takes no validator of their own: their defaults are made
    # without one, too.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, hide_input_in_errors=True)


def texts(value: object) -> object:
    """A mapping of texts from what YAML gives; numbers and booleans become the text that Spark wants."""
    return {str(key): text(item) for key, item in value.items()} if isinstance(value, dict) else value


def text(item: object) -> str:
    """One of them; raises ValueError for what is no text, number or truth."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, str | int | float):
        return str(item)
    message = (
        f"text, a number, true or false is needed, not {'nothing' if item is None else type(item).__name__}"
    )
    raise ValueError(message)

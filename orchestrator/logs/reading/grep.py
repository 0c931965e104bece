"""Regular expressions that people give: matched in time linear in the text, whatever the expression."""

MAX_CHARACTERS = 1_000
_MAX_BYTES = 8 << 20  # of the compiled expression; RE2 refuses what needs more


class Grep:
    """An expression of RE2: that of Python without look-around and back-references, which take time.

    Python's own `re` may take years for some, and nothing can interrupt it.
    """

    def __init__(self, expression: str) -> None:
        """Raises ValueError for what is none."""
        if len(expression) > MAX_CHARACTERS:
            message = f"it has {len(expression):,} characters, the limit is {MAX_CHARACTERS:,}"
            raise ValueError(message)
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - it has no types, and few calls want it

        options = re2.Options()
        options.max_mem = _MAX_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(_plain(expression), options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            words = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise ValueError(words) from error

    def is_in(self, text: str) -> bool:
        """Whether it matches somewhere."""
        return self._compiled.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """The text with halves of surrogate pairs replaced, which no UTF-8 has."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

"""Regular expressions given by users, matched in time linear in the length of the text."""

MAX_CHARACTERS = 1_000
_MAX_BYTES = 8 << 20  # of the compiled expression; RE2 refuses what needs more


class Grep:
    """A regular expression of RE2: Python's syntax without look-around and back-references.

    Python's `re` backtracks: some expressions take years, and a match cannot be interrupted.
    """

    def __init__(self, expression: str) -> None:
        """Compile it; raises ValueError for an invalid or too long expression."""
        if len(expression) > MAX_CHARACTERS:
            message = f"it has {len(expression):,} characters, the limit is {MAX_CHARACTERS:,}"
            raise ValueError(message)
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - it has no types, and few calls need it

        options = re2.Options()
        options.max_mem = _MAX_BYTES
        options.log_errors = False
        try:
            self._compiled = re2.compile(_plain(expression), options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
            raise ValueError(text) from error

    def is_in(self, text: str) -> bool:
        """Whether the expression matches anywhere in the text."""
        return self._compiled.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """The text with lone surrogates replaced: UTF-8 cannot encode them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

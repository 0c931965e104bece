"""String literals and quoted names: reads their values, and escapes values for them."""

import re
import sys

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.DOTALL)
_SPECIAL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_OCTAL_DIGITS = 3


def string_value(literal: str) -> str:
    """The value of a string literal, by the rules of Spark's SparkParserUtils.unescapeSQLString.

    Raises ValueError for an escape that is not a character.
    """
    if literal[0] in "rR":
        return literal[2:-1]
    quote, body = literal[0], literal[1:-1]
    # A doubled quote occurs only outside of escapes, so one pass replaces both.
    pattern = re.compile(rf"{quote}{quote}|{_ESCAPE.pattern}", re.DOTALL)
    value = pattern.sub(lambda match: quote if match[1] is None else _unescape(match[1]), body)
    try:
        # As in Java, two halves of a surrogate pair make one character.
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        message = r"this string holds half of a surrogate pair (\uD800 to \uDFFF), which is no character"
        raise ValueError(message) from error


def _unescape(code: str) -> str:
    if code[0] in "uU" and len(code) > 1:
        number = int(code[1:], 16)
        if number > sys.maxunicode:
            message = rf"this string holds \{code}, which is no character; the last one is \U0010FFFF"
            raise ValueError(message)
        return chr(number)
    if len(code) == _OCTAL_DIGITS:
        return chr(int(code, 8))
    return _SPECIAL.get(code, code)


def name_value(text: str) -> str:
    """The name in a plain or back-ticked identifier."""
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def escape_into(opening: str, value: str) -> str | None:
    """`value` escaped for a literal that starts with `opening`; None if it cannot be written there."""
    if opening in {"'", '"'}:
        return value.replace("\\", "\\\\").replace(opening, f"\\{opening}")
    if opening == "`":
        return value.replace("`", "``")
    # A raw string has no escapes, so it cannot hold its own closing quote.
    return None if opening[-1] in value else value


def quote_name(name: str) -> str:
    """`name` in back-ticks."""
    return f"`{name.replace('`', '``')}`"

"""Java properties files, which give Spark its settings without showing them in `ps`."""

from collections.abc import Mapping

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_SPECIAL = frozenset(" =:#!")  # separators and comment signs
_BIGGEST_UNIT = 0xFFFF


def render_properties(properties: Mapping[str, str]) -> str:
    """The text of a file from which `java.util.Properties.load` reads exactly these pairs.

    Spark itself then strips blanks and tabs (not line ends) from both ends of every value.
    """
    return "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in properties.items())


def _escape(text: str) -> str:
    return "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character in _SPECIAL:
        return "\\" + character
    if character.isascii() and character.isprintable():
        return character
    code = ord(character)
    if code <= _BIGGEST_UNIT:
        return f"\\u{code:04x}"
    units = character.encode("utf-16-be")  # a surrogate pair, as Java requires
    return f"\\u{units[:2].hex()}\\u{units[2:].hex()}"

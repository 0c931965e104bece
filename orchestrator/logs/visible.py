"""Escapes untrusted text for a terminal, so that it can neither control the terminal nor hide text."""

import json
import re

# DEL and the C1 control characters; soft hyphen; characters that change the direction of text, break lines
# or have no width, except joiners; controls of notations; tags; lone surrogates; blank letters.
_UNSEEN = (
    r"\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    r"\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
)
_UNSAFE = rf"\x00-\x08\x0b\x0c\x0e-\x1f{_UNSEEN}"  # control characters except tab and line feed
_HIDDEN = re.compile(rf"[{_UNSAFE}]|\r(?!\n)")
# The colours that loguru writes, one at a time. Others can hide text: concealed, black, background colour.
_COLOUR = r"\x1b\[(?:0|1|2|30(?=m\x1b\[1m)|3[1-6])m"
_HIDDEN_BUT_COLOURS = re.compile(rf"(?!{_COLOUR})(?:[{_UNSAFE}]|\r(?!\n))")
_IN_JSON = re.compile(rf"[{_UNSEEN}\u200c\u200d]")  # with the joiners


def visible(text: str, *, colours: bool = False) -> str:
    """Return the text with unsafe characters as readable escapes. `colours`: keep loguru's colour codes."""
    return (_HIDDEN_BUT_COLOURS if colours else _HIDDEN).sub(_escape, text)


def visible_json(text: str) -> str:
    """Return JSON text of the same value with unsafe characters escaped; `json` escapes those below 0x20."""
    return _IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFF:  # noqa: PLR2004 - the largest number of two digits
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - likewise of four

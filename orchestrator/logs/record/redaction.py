"""Secrets do not belong in logs: what is known as one, and what looks like one, becomes `***`."""

import re
import threading
from collections.abc import Callable, Iterable, Mapping

from orchestrator.logs.record.text import cut

MASK = "***"
_BEYOND = 1_000  # characters that are looked at behind a cut
_SHORTEST = 4  # a secret of three letters would take words apart
# Cheap words first: most messages hold none of them, and a look for words costs less than one for patterns.
_HINTS = ("pass", "pwd", "secret", "token", "key", "credential", "auth", "bearer", "://", "akia", "asia")
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&"'})\]]+)"""
# Each repetition is bounded, or takes what nothing else does: no text of a job may hold a log call up.
_NAMED = re.compile(
    r"""(?i)(?P<name>(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"""
    r"""|credentials?|authorization)[\w.-]{0,64}["']?\s{0,16}(?:=|:)\s{0,16})"""
    r"""(?P<scheme>(?:basic|bearer|apikey|digest)\s{1,16})?""" + _VALUE
)
_SCHEME = re.compile(r"(?i)\b(?P<scheme>bearer|apikey|basic)\s{1,16}[A-Za-z0-9._~+/-]{8,}=*")
_AWS_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")
_IN_URL = re.compile(  # a password may hold an @ that nobody has quoted
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/@:]{0,256}:[^\s/@]{1,256}@(?:[^\s/@\"',;]{1,256}@){0,8}"
)


_SECRET_NAME = re.compile(
    r"(?i)(?:passw(?:or)?d|passphrase|pwd|secret|token|(?:secret|access|api|private|account)[._-]?key)$"
    r"|account\.key\."  # of Azure: the name of the account comes behind it
)


def masked(settings: Mapping[str, str]) -> dict[str, str]:
    """These settings without secrets, and without what a name says to be one."""
    is_secret = _SECRET_NAME.search
    return {name: MASK if is_secret(name) else REDACTOR.mask(text) for name, text in settings.items()}


def secrets_in(settings: Mapping[str, str]) -> list[str]:
    """The values of settings whose names say that they are secret."""
    return [value for name, value in settings.items() if _SECRET_NAME.search(name)]


class Redactor:
    """Masks text. Secrets may be made known at any time, from any thread."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._guard = threading.Lock()
        self._secrets = frozenset[str]()
        self._known: re.Pattern[str] | None = None
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these from now on; what is too short to be told from words is left out."""
        new = {secret for secret in secrets if len(secret) >= _SHORTEST}
        with self._guard:
            if new <= self._secrets:
                return
            self._secrets |= new
            longest_first = sorted(self._secrets, key=lambda secret: (-len(secret), secret))
            self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def mask(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _mask_patterns(text) if _has_hint(text) else text

    def fit(self, text: str, limit: int) -> str:
        """Masked, and its beginning with the number of characters that are missing where it is too long."""
        if len(text) <= limit:
            return self.mask(text)
        # A secret over which the limit goes is masked whole.
        return f"{self.mask(text[: limit + _BEYOND])[:limit]}… [{len(text) - limit:,} more characters]"

    def fit_for(self, text: str) -> Callable[[str, int], str]:
        """What `fit` does with parts of this text, which in most texts is to cut them."""
        known = self._known
        is_clean = not _has_hint(text) and (known is None or known.search(text) is None)
        return cut if is_clean else self.fit


def _has_hint(text: str) -> bool:
    folded = text.lower()
    for hint in _HINTS:  # noqa: SIM110 - `any` takes twice as long, in each log call
        if hint in folded:
            return True
    return False


def _mask_patterns(text: str) -> str:
    text = _IN_URL.sub(rf"\g<scheme>{MASK}@", text)
    text = _NAMED.sub(rf"\g<name>{MASK}", text)
    text = _SCHEME.sub(rf"\g<scheme> {MASK}", text)
    return _AWS_KEY.sub(MASK, text)


REDACTOR = Redactor()
"""That of this process: who reads a secret makes it known here."""

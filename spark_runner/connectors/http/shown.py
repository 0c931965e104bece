"""Texts of a server in messages: on one line, without secrets, and not long."""

from collections.abc import Iterable

_WORDS = 200  # characters of a text in a message
_REACH = 4 * _WORDS  # characters that are read for them: white space and secrets become shorter


class Shown:
    """The beginning of texts, in which `secrets` are masked before anything is cut."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({*secrets} - {""}, key=len, reverse=True)  # one may have another in it
        self._longest = max(map(len, self._secrets), default=0)

    def __call__(self, text: str, *, is_whole: bool = True) -> str:
        """The beginning of a text, which ends within a word unless it `is_whole`."""
        end = _REACH + self._longest
        found = self._masked(text[:end])
        if len(text) > end or not is_whole:
            found = found[: max(0, len(found) - self._longest)]  # its end may be the beginning of a secret
        # Once more: a secret may have spaces, and a server may put them otherwise.
        return self._masked(" ".join(found.split()))[:_WORDS]

    def has_secret(self, text: str) -> bool:
        """Whether a secret is in a text; it takes much less time than the text for a message."""
        return any(secret in text for secret in self._secrets)

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

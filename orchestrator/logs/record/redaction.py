"""Masks secrets in all output of a process: known values and text that looks like a secret become `***`.

Uses the standard library only, because drivers on clusters import it too.
"""

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import quote, quote_plus

from orchestrator.logs.record.secret_patterns import MASK, has_hint, is_hidden, is_secret, mask_patterns
from orchestrator.logs.record.text import cut, quoted

__all__ = ["MASK", "REDACTOR", "Redactor", "masked", "secrets_in", "secrets_of", "spellings_of"]

_BEYOND = 65_536  # characters examined after a cut: the reach of most patterns
CUT_BEYOND_BYTES = _BEYOND  # that `cut_at` examines, too
_CUT_BACK_BYTES, _CUT_TRIES = 16_384, 12  # before a wished cut: how far, and how many places are tried
_SHORTEST = 4  # characters: a shorter secret would mask parts of words
_LINE = 16  # characters from which a line of a longer secret counts as a secret
_MOST_OF_JOBS, _MOST_CHARACTERS = 2_000, 4_000_000  # each secret costs 0.1 µs per log call
_MOST_REPEATED = 1_000  # texts, each at most as long as a field
_NO_SECRETS = frozenset({"true", "false", "none", "null", "auto", "default", "required", "optional"})
_REFERENCE = re.compile(r"\$\{(?:env|secret):[^{}]*\}")
_SETTINGS = frozenset({"conf", "variables", "options", "labels", "settings", "environment", "headers"})
# In JSON: settings, whose names alone may mark them as secret; and an option of a command line in a list.
_SETTINGS_OR_OPTION = re.compile(rf'"(?:{"|".join(sorted(_SETTINGS))})": [{{\[](?![}}\]])|[\[ ]"-')
_URL = re.compile(r"(?i)url")  # Spark's `spark.sql.redaction.options.regex`
_RECEIVER = "callback.url"
_OPTION = re.compile(r"--?(?P<name>[\w.-]+)(?:=(?P<value>.*))?", re.DOTALL)
_PEM_LABEL = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]+-----")  # RFC 7468; not a secret, unlike its lines
_AFTER_HOST = re.compile(r"(https?://[^/?#\s]*)[/?#]\S+")  # paths may contain secrets, too


def masked(settings: Mapping[str, str]) -> dict[str, str]:
    """These settings with secrets masked, by value and by the name of the setting."""
    return {name: MASK if is_hidden(name) else REDACTOR.mask(text) for name, text in settings.items()}


def secrets_in(settings: Mapping[str, str]) -> list[str]:
    """The values of settings whose names mark them as secret."""
    return [
        value
        for name, value in settings.items()
        if is_secret(name) and value.lower() not in _NO_SECRETS and not _REFERENCE.fullmatch(value)
    ]


def secrets_of(document: Any) -> list[str]:
    """The secrets of all settings in a JSON document, such as a definition or a plan."""
    if isinstance(document, list | tuple):
        return [*_secrets_of_arguments(document), *(text for each in document for text in secrets_of(each))]
    if not isinstance(document, Mapping):
        return []
    texts = {str(name): value for name, value in document.items() if isinstance(value, str)}
    inner = [secret for value in document.values() for secret in secrets_of(value)]
    return [*secrets_in(texts), *inner]


def _secrets_of_arguments(words: Sequence[Any]) -> Iterator[str]:
    """The secrets of a command line: `--password VALUE` as two words, or `--password=VALUE` as one."""
    for word, after in pairwise([*words, ""]):
        option = _OPTION.fullmatch(word) if isinstance(word, str) else None
        if option is not None:
            value = after if option["value"] is None else option["value"]
            is_value = isinstance(value, str) and not (option["value"] is None and value.startswith("--"))
            yield from secrets_in({option["name"]: value}) if is_value else ()


class Redactor:
    """Masks text. Secrets can be added at any time, from any thread.

    `source` returns more of them; it is called with the first text.
    """

    def __init__(
        self, secrets: Iterable[str] = (), *, source: Callable[[], Iterable[str]] | None = None
    ) -> None:
        self._guard = threading.Lock()
        self._secrets: dict[str, bool] = {}  # in order of arrival; True: never evicted
        self._known: tuple[str, ...] = ()  # the longest first
        self._repeated: dict[str, str] = {}  # text: masked text, with the present secrets
        self._source = source
        self.add(secrets)

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these from now on. Secrets too short to be distinguished from words are ignored."""
        self._add(secrets, is_kept=True)

    def add_of_job(self, secrets: Iterable[str]) -> None:
        """Mask these until the secrets of many later jobs evict them: a worker runs for months."""
        self._add(secrets, is_kept=False)

    def _add(self, secrets: Iterable[str], *, is_kept: bool) -> None:
        new = set(spellings_of(secrets))
        with self._guard:
            if all(form in self._secrets and (self._secrets[form] or not is_kept) for form in new):
                return
            # A copy: tests restore the former dictionary by reference.
            known = {form: kept for form, kept in self._secrets.items() if form not in new}
            known |= {form: is_kept or self._secrets.get(form, False) for form in sorted(new)}
            passing = [form for form, kept in known.items() if not kept]
            size = sum(map(len, passing))
            for number, form in enumerate(passing):
                if len(passing) - number <= _MOST_OF_JOBS and size <= _MOST_CHARACTERS:
                    break
                size -= len(form)
                del known[form]
            self._secrets = known
            self._known = tuple(sorted(known, key=lambda form: (-len(form), form)))
            self._repeated = {}  # a new one: a thread that masks at this moment writes to the former one

    def mask(self, text: str) -> str:
        """The text with secrets masked."""
        for secret in self._all():  # faster than one pattern of all secrets, and linear in their number
            if secret in text:
                text = text.replace(secret, MASK)
        return mask_patterns(text) if has_hint(text) else text

    def fit(self, text: str, limit: int) -> str:
        """The masked text; if it is too long, its beginning and the number of missing characters."""
        if len(text) <= limit:
            return self.mask(text)
        # A secret that crosses the limit is masked as a whole, however long it is.
        longest = max(map(len, self._all()[:1]), default=0)
        end = limit + max(_BEYOND, longest)
        begin = self.mask(text[:end])
        if end < len(text):  # half a secret may be at the end, and moves up when others become shorter
            begin = begin[: max(0, len(begin) - longest)]
        return f"{begin[:limit]}… [{len(text) - limit:,} more characters]"

    def fit_repeated(self, text: str, limit: int) -> str:
        """`fit` with a cache, for texts that occur in many records. The limit must always be the same."""
        repeated = self._repeated
        found = repeated.get(text)
        if found is None:
            if len(text) > limit:  # the cache would keep all of it
                return self.fit(text, limit)
            if len(repeated) >= _MOST_REPEATED:
                repeated.clear()
            found = repeated[text] = self.fit(text, limit)
        return found

    def fit_for(self, text: str) -> Callable[[str, int], str]:
        """The function that does what `fit` does for parts of this text: `cut` if it holds no secret."""
        is_clean = not has_hint(text) and not any(secret in text for secret in self._all())
        return cut if is_clean else self.fit

    def cut_at(self, data: bytes, size: int) -> int:
        """Where to cut a text in two, at `size` or before: where no secret is, after a line or word if any.

        `size` is less than that of the text. Its parts are masked as the whole text would be.
        """
        start = max(0, size - 2 * _CUT_BACK_BYTES)
        around = _decoded(data[start : size + CUT_BEYOND_BYTES])
        whole = None if self.fit_for(around) is cut else self.mask(around)
        step = _CUT_BACK_BYTES // _CUT_TRIES
        for near in range(size, max(step, size - _CUT_BACK_BYTES), -step):
            end = data.rfind(b"\n", near - step, near)
            end = data.rfind(b" ", near - step, near) if end < 0 else end
            at = _whole_character(data, near) if end < 0 else end + 1
            before = _decoded(data[start:at])
            if whole is None or self.mask(before) + self.mask(around[len(before) :]) == whole:
                return at
        return _whole_character(data, size)

    def document(self, value: Any, *, within: str = "") -> Any:
        """A JSON value with every string masked, and the values of settings with secret names."""
        if isinstance(value, str):
            return (
                _AFTER_HOST.sub(rf"\1/{MASK}", self.mask(value)) if within == _RECEIVER else self.mask(value)
            )
        if isinstance(value, Mapping):
            is_settings = within in _SETTINGS
            return {
                name: MASK
                if is_settings and _is_value(each) and _is_hidden(str(name), within)
                else self.document(each, within=f"{within}.{name}" if within == "callback" else str(name))
                for name, each in value.items()
            }
        if isinstance(value, list | tuple):
            secrets = set(_secrets_of_arguments(value))  # compared as whole words: they may be short
            return [
                MASK if isinstance(each, str) and each in secrets else self.document(each, within=within)
                for each in value
            ]
        return value

    def is_clean_json(self, text: str) -> bool:
        """Whether `document` changes nothing in the value of this text, which `json.dumps` has written.

        One look at a whole text costs a fifth of one at each of its strings. False means that it may.
        """
        return not (
            has_hint(text)
            or any(secret in text for secret in self._all())
            or _SETTINGS_OR_OPTION.search(text) is not None
        )

    def _all(self) -> tuple[str, ...]:
        if self._source is not None:
            source, self._source = self._source, None
            self.add(source())
        return self._known


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _whole_character(data: bytes, size: int) -> int:
    """The size without the part of a UTF-8 character at its end."""
    for back in range(4):
        if data[size - back] & 0xC0 != 0x80:  # noqa: PLR2004 - the byte after the cut begins a character
            return size - back
    return size


def _is_value(each: object) -> bool:
    """Whether the value of a setting is more than a reference to a secret."""
    return isinstance(each, str) and bool(each) and not _REFERENCE.fullmatch(each)


def _is_hidden(name: str, within: str) -> bool:
    return is_hidden(name) or (within == "options" and _URL.search(name) is not None)


def spellings_of(secrets: Iterable[str]) -> list[str]:
    """The texts to mask for these secrets, the longest first; those that look like a word are left out."""
    found = {form for secret in secrets for form in _forms(secret) if len(form) >= _SHORTEST}
    return sorted(found, key=lambda form: (-len(form), form))


def _forms(secret: str) -> set[str]:
    """A secret as written in text, URLs, JSON and SQL, and each of its lines: logs are read line by line."""
    lines = _PEM_LABEL.sub(" ", secret).split() if len(secret) > _LINE else []
    return {
        secret.strip(),
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),  # slashes as they are
        quote_plus(secret, errors="replace"),
        quoted(secret)[1:-1],
        json.dumps(secret)[1:-1],
        secret.replace("'", "''"),
        *(line for line in lines if len(line) >= _LINE),
    }


REDACTOR = Redactor(source=lambda: secrets_in(os.environ))
"""The redactor of this process. Code that reads a secret adds it here; the environment is included."""

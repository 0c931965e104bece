"""Environment variables that a definition may name, and receivers that may get their values."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from orchestrator.models.definition import Definition
from orchestrator.policy.rules import ALL_POOLS, PolicyRefused, Rules, setting_name

_REFERENCE = re.compile(r"\$\{env[:.](\w{0,200})")  # with a dot Hadoop fills it in
_NESTED_REFERENCE = re.compile(
    r"\$\{[^}$]{0,200}\$(?:\{[^}]{0,50}\})?"
)  # Hadoop fills in the inner reference first
_SET_VARIABLE = re.compile(
    r"spark\.(?:executorEnv|kubernetes\.driverEnv|yarn\.appMasterEnv|kubernetes\.(?:driver|executor)\.secretKeyRef)"
    r"\.(.+)"
)
_VARIABLE = r"\$\{env:\w+\}"
_WHOLE_HOST = re.compile(rf"{_VARIABLE}(?::(?:[0-9]+|{_VARIABLE}))?")


def check_variables(rules: Rules, definition: Definition) -> None:
    """Check each variable that a definition refers to, or sets for drivers and executors."""
    texts = (
        *(definition.callback.url, definition.jar, *definition.arguments),
        *definition.variables.values(),
        *_texts(definition.spark.model_dump()),
    )
    setting, listed = rules.find("environment")
    for text in texts if listed is not None else ():
        if nested := _NESTED_REFERENCE.search(text):
            raise rules.refusal(setting, listed or (), f"the nested reference {nested[0]!r}")
    is_set = {match[1] for key in definition.spark.conf if (match := _SET_VARIABLE.fullmatch(key))}
    check_named(rules, (definition.script, *texts), is_set)


def check_named(rules: Rules, texts: Iterable[str], others: Iterable[str] = ()) -> None:
    """Check each variable that one of the texts refers to, and these others."""
    names = {match[1] for text in texts for match in _REFERENCE.finditer(text)}.union(others)
    for name in sorted(names):
        rules.allow("environment", name, f"the environment variable {name!r}")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def check_receiver(rules: Rules, url: str) -> None:
    """Check a receiver whose host the definition names; a host from a variable is checked at the call.

    The worker sends its variables to no host that a definition chooses, unless the operator lists the host or
    the variable. That includes the host name itself: a name server would get it.
    """
    if not url:
        return
    _, has_scheme, rest = url.partition("://") if url.startswith("http") else ("", "", url)
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host = authority.rpartition("@")[2] if has_scheme else authority
    if _WHOLE_HOST.fullmatch(host):
        return
    lists = (rules.find("callback_hosts")[1], rules.find("environment")[1])
    if (named := _REFERENCE.search(url)) and lists == (None, None):
        raise PolicyRefused(
            f"the callback would send the worker's variable {named[1]!r} to {host}: an operator can list the "
            f"host in the setting {setting_name(ALL_POOLS, 'callback_hosts')}, or the variable in "
            f"{setting_name(ALL_POOLS, 'environment')}; or the variable can hold the whole address"
        )
    if _REFERENCE.search(host):
        return
    try:
        parts = urlsplit(_REFERENCE.sub("", url))
        name, port = parts.hostname, parts.port
    except ValueError:
        raise PolicyRefused("the URL of the callback cannot be read") from None
    if name:
        rules.check_host(name, port or (443 if parts.scheme == "https" else 80))

"""Variables of an environment: which a definition may name, and to whom its receiver would show them."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from orchestrator.models.definition import Definition
from orchestrator.policy.rules import ALL_POOLS, PolicyRefused, Rules, setting_name

_REFERENCE = re.compile(r"\$\{env[:.](\w{0,200})")  # with a dot it is Hadoop that fills it in
_NESTED_REFERENCE = re.compile(
    r"\$\{[^}$]{0,200}\$(?:\{[^}]{0,50}\})?"
)  # Hadoop fills in the inner one first
_SET_VARIABLE = re.compile(
    r"spark\.(?:executorEnv|kubernetes\.driverEnv|yarn\.appMasterEnv|kubernetes\.(?:driver|executor)\.secretKeyRef)"
    r"\.(.+)"
)
_VARIABLE = r"\$\{env:\w+\}"
_WHOLE_HOST = re.compile(rf"{_VARIABLE}(?::(?:[0-9]+|{_VARIABLE}))?")


def check_variables(rules: Rules, definition: Definition) -> None:
    """Each variable that anybody fills in, or that is set for drivers and executors."""
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
    """Each variable that one of the texts names, and these."""
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
    """A receiver that is named in the definition; one that a variable names is looked at when it is called.

    A variable of the worker goes to no host of the definition's choice, unless the operator lists either: not
    as part of that host either, for then a name server is asked for it.
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

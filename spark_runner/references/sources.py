"""The sources of values, as the operator configures them: the environment, and scopes of secrets.

A worker writes them into the run plan: names and folders, never values.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from spark_runner.protocol.text import did_you_mean
from spark_runner.references.errors import Unavailable, Unresolved
from spark_runner.references.reference import Reference
from spark_runner.references.secret_files import read_secret

PROVIDERS = "spark_job_orchestrator.secrets"
"""The group of entry points of providers: functions of a key and the options of the scope."""

Provider = Callable[[str, Mapping[str, str]], str]


@dataclass(frozen=True)
class Sources:
    """Where references find their values.

    `environment` holds patterns of the names of variables. A scope has one of `folder`, `prefix` and
    `provider`.
    """

    environment: tuple[str, ...] = ()
    secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The form in a run plan."""
        return {"environment": list(self.environment), "secrets": {**self.secrets}}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Sources":
        """Read that form."""
        return cls(tuple(document.get("environment") or ()), dict(document.get("secrets") or {}))

    def value(self, reference: Reference) -> str:
        """The value, in this process at this moment; raises Unresolved."""
        try:
            found = self._variable(reference.name) if reference.kind == "env" else self._secret(reference)
        except Unavailable as error:
            raise Unresolved(f"{reference} has no value: {error}") from None
        if not found:
            raise Unresolved(f"{reference} has no value: it is empty")
        return found

    def _variable(self, name: str) -> str:
        if not any(fnmatchcase(name, pattern) for pattern in self.environment):
            raise Unavailable(
                "the setting references.environment does not list the variable; an operator can add it"
            )
        return _variable(name)

    def _secret(self, reference: Reference) -> str:
        scope, _, key = reference.name.partition("/")
        source = self.secrets.get(scope)
        if source is None:
            hint = did_you_mean(scope, self.secrets) or "; an operator adds it to references.secrets"
            raise Unavailable(f"there is no scope '{scope}'{hint}")
        if "folder" in source:
            return read_secret(source["folder"], key)
        if "prefix" in source:
            return _variable(source["prefix"] + key)
        return _provided(source["provider"], key, source.get("options") or {})


def _variable(name: str) -> str:
    if name not in os.environ:
        raise Unavailable(f"the environment of the driver has no variable {name}")
    return os.environ[name]


def _provided(name: str, key: str, options: Mapping[str, str]) -> str:
    from importlib.metadata import entry_points  # noqa: PLC0415 - lazy: it slows the start of a driver

    found = next(iter(entry_points(group=PROVIDERS, name=name)), None)
    if found is None:
        message = f"no package of the driver's Python has the provider '{name}' (entry point {PROVIDERS})"
        raise Unavailable(message)
    try:
        provider: Provider = found.load()
        value = provider(key, options)
    except Unavailable:
        raise
    except Exception as error:  # noqa: BLE001 - code of another package; its message may quote the secret
        raise Unavailable(f"provider '{name}' failed with {type(error).__name__}") from None
    if not isinstance(value, str):
        raise Unavailable(f"provider '{name}' gave no text")
    return value

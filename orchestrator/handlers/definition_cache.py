"""Definitions of jobs, decoded: the runs of a schedule have the same one, and validation takes time."""

import json
from collections.abc import Sequence
from functools import lru_cache

from orchestrator.logs.record.redaction import secrets_of
from orchestrator.model.definition import Definition

_LONGEST = 4096  # bytes; so the cache holds a few megabytes
_MOST = 256


def definition_in(data: bytes) -> tuple[Definition, Sequence[str]]:
    """The definition in the bytes of a node, and its secrets; raises ValueError."""
    return _repeated(data) if len(data) <= _LONGEST else _decoded(data)


def _decoded(data: bytes) -> tuple[Definition, Sequence[str]]:
    definition = Definition.model_validate(json.loads(data))
    return definition, secrets_of(definition.model_dump(include={"variables", "spark", "arguments"}))


_repeated = lru_cache(_MOST)(_decoded)

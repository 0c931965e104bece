"""What an operator has changed of a job while it runs: of its pushes, and of its streams."""

import reprlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from spark_runner.push.errors import SettingError
from spark_runner.push.settings import Limits

_MAX_LANES = 1000
_BOUNDS = {
    "concurrency": (1, 10_000),  # of threads, too: tasks must live
    "buffer": (1, 10**9),
    "rate": (sys.float_info.min, 1_000_000),
    "rollbacks": (0, 10**9),
    "batch_rows": (1, 10**9),
    "batch_seconds": (0.1, 86_400),
}
_FRACTIONS = frozenset({"rate", "batch_seconds"})


@dataclass(frozen=True, slots=True)
class Adjustment:
    """The limits that replace those of the script, for all pushes of a job together; None: no change.

    `buffer` are records. `rollbacks` counts the orders to deliver again what is not acknowledged.
    `batch_rows` is the limit of each streaming query, and `batch_seconds` the target of those whose limit is
    tuned; with `is_tuned`, that is each one without `batch_rows`.
    """

    concurrency: int | None = None
    rate: float | None = None
    buffer: int | None = None
    paused: tuple[str, ...] = ()
    is_suspended: bool = False
    rollbacks: int = 0
    batch_rows: int | None = None
    batch_seconds: float | None = None
    is_tuned: bool = False

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """The adjustment in a document, whose further fields are for others; raises SettingError."""
        known = {name: document[name] for name in cls.__dataclass_fields__ if document.get(name) is not None}
        paused = known.setdefault("paused", [])
        if not isinstance(paused, list) or len(paused) > _MAX_LANES or not all(map(_is_text, paused)):
            raise SettingError(f"'paused' must be a list of at most {_MAX_LANES} names of lanes")
        for name in ("is_suspended", "is_tuned"):
            if not isinstance(known.setdefault(name, False), bool):
                raise SettingError(f"'{name}' must be true or false")
        for name, (least, most) in _BOUNDS.items():
            value = known.get(name, 1)
            is_number = type(value) is int or (type(value) is float and name in _FRACTIONS)
            if not is_number or not least <= value <= most:
                above = "above 0" if least in {1, sys.float_info.min} else f"of at least {least:g}"
                raise SettingError(
                    f"'{name}' is {reprlib.repr(value)}; it must be a number {above}, and at most {most}"
                )
        return cls(**{**known, "paused": tuple(paused)})

    def document(self) -> dict[str, Any]:
        """The changes by their names."""
        found = {**asdict(self), "paused": list(self.paused)}
        return {name: value for name, value in found.items() if value not in (None, [], False, 0)}

    def __str__(self) -> str:
        """The changes in one line, for people."""
        named = {**self.document(), "paused": " ".join(self.paused)}
        return ", ".join(f"{name} {value}" for name, value in named.items() if value)

    def changed(
        self, values: Mapping[str, Any], *, pause: Iterable[str] = (), resume: Iterable[str] = ()
    ) -> Self:
        """The adjustment with further values; `pause` and `resume` are lanes. Raises SettingError."""
        paused = sorted({*self.paused, *pause} - {*resume})
        return type(self).of({**self.document(), **values, "paused": paused})

    def applied(self, limits: Limits) -> Limits:
        """The limits with the changes."""
        lanes = {name: replace(limits.of(name), is_paused=True) for name in self.paused}
        return replace(
            limits,
            concurrency=self.concurrency or limits.concurrency,
            rate=self.rate or limits.rate,
            buffer_records=self.buffer or limits.buffer_records,
            is_suspended=self.is_suspended or limits.is_suspended,
            lanes={**limits.lanes, **lanes},
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str)

"""Filters by the names of jobs: whole names, and patterns of a shell such as `daily*`."""

import fnmatch
import re
from collections.abc import Collection

_WILDCARDS = frozenset("*?[")  # the names of jobs have none of these


class NameFilter:
    """Matches names that are listed, or that match a listed pattern, with case; without any, all names."""

    def __init__(self, names: Collection[str]) -> None:
        self.exact = frozenset(name for name in names if not _WILDCARDS.intersection(name))
        self._patterns = [re.compile(fnmatch.translate(name)) for name in set(names) - self.exact]
        self.has_patterns = bool(self._patterns)

    def __bool__(self) -> bool:
        return bool(self.exact or self._patterns)

    def matches(self, name: object) -> bool:
        """Whether the filter lets this name pass."""
        if not self or (isinstance(name, str) and name in self.exact):
            return True
        return isinstance(name, str) and any(pattern.match(name) for pattern in self._patterns)

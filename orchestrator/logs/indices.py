"""The daily indices as a whole: how large they are, and which are too old."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from orchestrator.logs.settings import LogSettings
from orchestrator.logs.shipping.http import Http, http_of

_WANTED = "indices.*.primaries.docs.count,indices.*.total.store.size_in_bytes"
_NOT_FOUND = 404
_WHAT = "the indices of logs"


@dataclass(frozen=True, slots=True)
class DailyIndex:
    """One day of logs."""

    name: str
    day: date
    documents: int
    size_bytes: int


class DailyIndices:
    """Those of one alias. Raises TargetUnreachable, TargetRefuses."""

    def __init__(self, http: Http, alias: str, zone: str = "UTC") -> None:
        self._http, self._alias, self._zone = http, alias, ZoneInfo(zone)

    def all(self) -> Sequence[DailyIndex]:
        """All that there are, the oldest first; what only looks similar is left out."""
        # The rights of an index are enough for this, where the list of `_cat` asks for those of a cluster.
        path = f"/{self._alias}-*/_stats/docs,store?filter_path={_WANTED}"
        answer = self._http.request("GET", path)
        found = list[DailyIndex]()
        name = re.compile(rf"{re.escape(self._alias)}-(\d{{4}}-\d\d-\d\d)")
        indices = {} if answer.status == _NOT_FOUND else answer.document(_WHAT).get("indices", {})
        for index, facts in indices.items():
            if match := name.fullmatch(index):
                try:
                    day = date.fromisoformat(match[1])
                except ValueError:
                    continue
                count, size = facts["primaries"]["docs"]["count"], facts["total"]["store"]["size_in_bytes"]
                found.append(DailyIndex(index, day, int(count), int(size)))
        return sorted(found, key=lambda index: index.day)

    def older_than(self, days: int, *, today: date | None = None) -> Sequence[DailyIndex]:
        """Those of days that ended more than so many days ago, by the zone in which days begin."""
        first_kept = (today or datetime.now(self._zone).date()) - timedelta(days=days)
        return [index for index in self.all() if index.day < first_kept]

    def remove(self, index: DailyIndex) -> None:
        """Delete one; that somebody else was faster is no error."""
        answer = self._http.request("DELETE", f"/{index.name}")
        if answer.status != _NOT_FOUND:
            answer.document(_WHAT)


def daily_indices(settings: LogSettings) -> DailyIndices:
    """Those that the settings name; raises TargetRefuses for files that cannot be read."""
    return DailyIndices(http_of(settings), settings.alias, settings.timezone)

"""The daily indices of logs in Elasticsearch: their sizes, and the removal of old ones."""

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
    """The index of one day."""

    name: str
    day: date
    documents: int
    size_bytes: int


class DailyIndices:
    """The daily indices of one alias. Every method raises TargetUnreachable or TargetRefuses."""

    def __init__(self, http: Http, alias: str, zone: str = "UTC") -> None:
        self._http, self._alias, self._zone = http, alias, ZoneInfo(zone)

    def all(self) -> Sequence[DailyIndex]:
        """All daily indices, oldest first. Indices whose suffix is not a date are left out."""
        # `_stats` needs privileges on the indices only; `_cat/indices` needs one on the cluster.
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
        """The indices of days that ended more than `days` days ago, in the configured time zone."""
        first_kept = (today or datetime.now(self._zone).date()) - timedelta(days=days)
        return [index for index in self.all() if index.day < first_kept]

    def remove(self, index: DailyIndex) -> None:
        """Delete an index; an index that is already gone is no error."""
        answer = self._http.request("DELETE", f"/{index.name}")
        if answer.status != _NOT_FOUND:
            answer.document(_WHAT)


def daily_indices(settings: LogSettings) -> DailyIndices:
    """The daily indices that the settings name; raises TargetRefuses if a key or CA file cannot be read."""
    return DailyIndices(http_of(settings), settings.alias, settings.timezone)

"""The daily index of a record, by the record's time in the configured time zone."""

import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo


class Days:
    """Formats index names and timestamps; caches the last day and the last second."""

    def __init__(self, alias: str, zone: str = "UTC") -> None:
        self._alias, self._zone = alias, ZoneInfo(zone)
        self._from, self._until, self._index = 0.0, 0.0, ""
        self._second, self._text = -1, ""

    def index(self, epoch: float) -> str:
        """`<alias>-YYYY-MM-DD` for seconds since the epoch."""
        if not self._from <= epoch < self._until:
            day = datetime.fromtimestamp(epoch, self._zone).replace(hour=0, minute=0, second=0, microsecond=0)
            self._from = day.timestamp()
            self._until = (day + timedelta(days=1)).timestamp()
            self._index = f"{self._alias}-{day:%Y-%m-%d}"
        return self._index

    def timestamp(self, epoch: float) -> str:
        """ISO 8601 in UTC, microseconds."""
        micros = round(epoch * 1_000_000)
        second, rest = divmod(micros, 1_000_000)
        if second != self._second:
            self._text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self._second = second
        return f"{self._text}.{rest:06d}Z"

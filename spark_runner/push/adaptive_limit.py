"""The number of requests in flight that a target can serve: additive increase, multiplicative decrease.

As TCP and Netflix's concurrency-limits have it: a success in good time adds to the limit, one for as many
requests as are in flight, and a sign of overload cuts it, at most once for the requests that were in flight.
"""

_CUT = 0.7
_SLOW = 2.0  # times the usual latency, in the mean of the last requests, are a sign of overload
_LEAST_S = 0.005  # of it that is no noise
_RECENT, _USUAL = 0.2, 0.01  # the weight of a request in the mean of the last ones, and in the usual latency


class AdaptiveLimit:
    """The most requests in flight, between one and `most`; it begins at `most`."""

    def __init__(self, most: int, *, is_adaptive: bool = True) -> None:
        self._most, self._is_adaptive = most, is_adaptive
        self._limit = float(most)
        self._recent = self._usual = 0.0  # seconds
        self._cut_at = float("-inf")

    @property
    def usual(self) -> float:
        """The usual latency, in seconds; 0 before the first success."""
        return self._usual

    @property
    def limit(self) -> int:
        """The most requests in flight now."""
        return max(1, int(self._limit))

    def adjust(self, most: int) -> None:
        """Change the upper bound; a limit at the old bound follows it."""
        is_at_most = self._limit >= self._most
        self._most = most
        self._limit = float(most) if is_at_most else min(self._limit, float(most))

    def succeeded(self, started: float, now: float) -> None:
        """A request that started then has succeeded now."""
        latency = now - started
        self._recent += (_RECENT if self._usual else 1.0) * (latency - self._recent)
        self._usual += (_USUAL if self._usual else 1.0) * (latency - self._usual)
        if self._recent > max(_SLOW * self._usual, self._usual + _LEAST_S):
            self._cut(started, now)
        else:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)

    def overloaded(self, started: float, now: float) -> None:
        """The target said that it is overloaded, or did not answer a request that started then."""
        self._cut(started, now)

    def _cut(self, started: float, now: float) -> None:
        # Requests that started before the last cut do not show its effect.
        if self._is_adaptive and started >= self._cut_at:
            self._limit = max(1.0, self._limit * _CUT)
            self._cut_at = now

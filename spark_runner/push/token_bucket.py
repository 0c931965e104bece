"""A limit of requests per second."""

_ROUNDING = 1e-6  # of a token: what sums of fractions may lack


class TokenBucket:
    """Tokens that come back at a rate, of which at most `burst` seconds' worth are kept; at least one."""

    def __init__(self, rate: float = 0.0, burst: float = 0.1) -> None:
        self._rate, self._burst = rate, burst
        self._tokens, self._filled = 0.0, float("-inf")

    @property
    def rate(self) -> float:
        """Tokens per second; 0: no limit."""
        return self._rate

    def adjust(self, rate: float, now: float) -> None:
        """Change the rate from now on."""
        self._fill(now)
        self._rate = rate
        self._tokens = min(self._tokens, self._most)

    def wait(self, now: float) -> float:
        """The seconds until there is a token; 0 if there is one."""
        if not self._rate:
            return 0.0
        self._fill(now)
        lacking = 1 - self._tokens
        return lacking / self._rate if lacking > _ROUNDING else 0.0

    def take(self, now: float) -> None:
        """Take a token, which `wait` has found."""
        if self._rate:
            self._fill(now)
            self._tokens -= 1

    @property
    def _most(self) -> float:
        return max(1.0, self._rate * self._burst)

    def _fill(self, now: float) -> None:
        if self._rate:
            self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate)
        self._filled = now

"""The search for damage in the queues: now and then, beside the work of a worker."""

import random
import threading

from loguru import logger

from queues.errors import QueueError
from queues.scrubber import Report, Scrubber

_STOP_SECONDS = 2.0  # who is in the middle of a search ends with the session


class Scrubbing:
    """Scrubs every `interval` seconds, with jitter: several workers may scrub at once, and need not."""

    def __init__(self, scrubber: Scrubber, interval: float) -> None:
        self._scrubber, self._interval = scrubber, interval
        self._stopping = threading.Event()
        self._told = ""
        self._thread = threading.Thread(target=self._loop, name="scrubbing", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Search no more."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)

    def _loop(self) -> None:
        while not self._stopping.wait(self._interval * random.uniform(0.5, 1.5)):  # noqa: S311 - not for security
            try:
                self._tell(self._scrubber.scrub())
            except QueueError as error:
                logger.warning("the queues were not searched for damage: {}", error)
            except Exception:  # noqa: BLE001 - a bug in a search must not end all later ones
                logger.exception("the search for damage in the queues failed")

    def _tell(self, report: Report) -> None:
        # Each mend was logged when it was made; what is left would be told every time.
        left = "; ".join(f"{', '.join(names)}: {kind}" for kind, names in report.left.items())
        if left and left != self._told:
            logger.warning("left as it is in the queues: {}", left)
        self._told = left

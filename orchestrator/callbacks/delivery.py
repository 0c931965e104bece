"""One call of a receiver in a thread of its own: whoever asked for it goes on meanwhile."""

import threading
from collections.abc import Callable

from orchestrator.callbacks.callback import CallbackError, CallbackReply


class CallbackDelivery:
    """A call under way, and what has come of it."""

    def __init__(self, number: int, call: Callable[[], CallbackReply], on_end: Callable[[], None]) -> None:
        self.number = number
        self.outcome: CallbackReply | CallbackError | None = None  # None while it is under way
        self._call, self._on_end = call, on_end

    def start(self) -> None:
        """Call now; `on_end` is called when there is an outcome."""
        thread = threading.Thread(target=self._run, name=f"callback-{self.number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are no more threads: the place for the call was taken already
            self._run()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except CallbackError as error:
            self.outcome = error
        except Exception as error:  # noqa: BLE001 - an outcome in any case: the job waits for it
            self.outcome = CallbackError(f"it could not be called: {type(error).__name__}")
        self._on_end()

"""One call of a receiver in its own thread, so that its caller can continue."""

import threading
from collections.abc import Callable

from orchestrator.callbacks.callback import CallbackError, CallbackReply


class CallbackDelivery:
    """A call in progress, and its outcome."""

    def __init__(self, number: int, call: Callable[[], CallbackReply], on_end: Callable[[], None]) -> None:
        self.number = number
        self.outcome: CallbackReply | CallbackError | None = None  # None while it is in progress
        self._call, self._on_end = call, on_end

    def start(self) -> None:
        """Start the call; `on_end` is called once there is an outcome."""
        thread = threading.Thread(target=self._run, name=f"callback-{self.number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread is available: call here, because the call is reserved already
            self._run()

    def _run(self) -> None:
        try:
            self.outcome = self._call()
        except CallbackError as error:
            self.outcome = error
        except Exception as error:  # noqa: BLE001 - the job waits for an outcome in any case
            self.outcome = CallbackError(f"it could not be called: {type(error).__name__}")
        self._on_end()

"""Fixtures of the acceptance tests."""

import signal

from tests.acceptance.support import desk, fork_server, shared_desk, stand_in_desk

__all__ = ["desk", "fork_server", "shared_desk", "stand_in_desk"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell: every command typed here would ignore Ctrl-C as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

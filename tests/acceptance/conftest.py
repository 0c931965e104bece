"""Fixtures of the acceptance tests."""

import signal

from tests.acceptance.support import fork_server, shared_shell, shell, stand_in_shell

__all__ = ["fork_server", "shared_shell", "shell", "stand_in_shell"]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in the background of a shell: every command started here would inherit it and ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)

"""Signals that ask a process to end."""

import signal


def termination_signals() -> list[signal.Signals]:
    """Return the signals besides Ctrl-C that ask this process to end: SIGTERM, and the end of its terminal.

    `nohup` lets a process ignore the end of its terminal. It is then not among the signals.
    """
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGTERM] if ignored else [signal.SIGTERM, signal.SIGHUP]

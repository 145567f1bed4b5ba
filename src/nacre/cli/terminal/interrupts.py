"""Ctrl-C at any moment: `stopped` and status 130, also while modules are being imported.

An interrupted import has nothing to clean up, but may turn the KeyboardInterrupt into another
error, or have Python end by the signal for it; so it ends the process at once. Imports nothing
that Python has not loaded: it is to be ready first.
"""

# `signal` itself loads `enum` and all that it needs.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

STOPPED = 130

_heard: list[int] = []  # the signals that were raised as KeyboardInterrupt


def stop_at_once() -> None:
    """From now on an interrupt ends the process: nothing is to be cleaned up yet."""
    # Not where whoever started us ignores interrupts, as `nohup` does.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_interrupts() -> None:
    """From now on an interrupt is a KeyboardInterrupt: a verb cleans up after itself."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, _raise)


def is_interrupted() -> bool:
    """Whether an interrupt was raised, whatever became of it on its way."""
    return bool(_heard)


def exit_after_interrupt(status: int) -> None:
    """End the process after an interrupt: Python would end by the signal where an import had it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)


def _end(number: int, frame: object) -> None:
    # A terminal has shown `^C`, and the cursor stands behind it.
    try:
        os.write(2, b"\nstopped\n" if os.isatty(2) else b"stopped\n")
    finally:  # also where nobody reads it
        os._exit(STOPPED)


def _raise(number: int, frame: object) -> None:
    _heard.append(number)
    raise KeyboardInterrupt

"""`nacre` and `python -m nacre`: ready for Ctrl-C before anything heavy is imported."""

from nacre.cli.terminal.interrupts import stop_at_once


def run() -> None:
    """Entry point of the console script: runs a verb and exits."""
    stop_at_once()
    from nacre.cli.main import run as run_verb

    run_verb()


if __name__ == "__main__":
    run()

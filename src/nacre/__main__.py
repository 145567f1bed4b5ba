"""`python -m nacre` is `nacre`."""

from nacre.cli.main import run

run()

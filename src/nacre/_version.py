"""The version, in a file of its own so that building and `--version` import nothing else."""

__version__ = "0.1.0"

"""PyTorch, which is an extra: loaded when somebody brings a module in, never before."""

from __future__ import annotations

import importlib
import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from typing import Any

from nacre.core.importing.findings import refusal
from nacre.core.rules.torch import TCH07


@cache
def _library() -> Any:  # noqa: ANN401 - the package
    # By name: what is typed must not depend on whether the extra is installed.
    return importlib.import_module("torch")


def torch() -> Any:  # noqa: ANN401 - the package
    """The package; InputError where it is missing."""
    try:
        return _library()
    except ImportError:
        help_ = 'pip install "nacre[torch]"'
        message = "bringing in PyTorch modules needs the package `torch`"
        raise refusal(TCH07, "torch", message, help_) from None


@contextmanager
def silenced() -> Iterator[None]:
    """Without what PyTorch writes beside its errors: warnings, logged tracebacks, printed graphs.

    What the user needs of it stands in the finding.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    nowhere = io.StringIO()
    try:
        with warnings.catch_warnings(), redirect_stdout(nowhere), redirect_stderr(nowhere):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)

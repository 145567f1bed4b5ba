"""The interpreter's public names, under the package name that its specification gives them."""

from nacre.base.diagnostics import Diagnostic, InputError

__all__ = ["Diagnostic", "InputError"]

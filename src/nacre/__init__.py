"""nacre: model, plan, proof, bits and time for neural processors with software-managed memory."""

from __future__ import annotations

from nacre._version import __version__
from nacre.base.lazy import load_on_use

TYPE_CHECKING = False  # `typing` takes longer to load than the rest: Ctrl-C must find us ready
if TYPE_CHECKING:
    from nacre import calibrate, core, llm, nac, nem
    from nacre.base.diagnostics import Diagnostic, InputError
    from nacre.binding import TcbImage, bind
    from nacre.compile.api import compile
    from nacre.compile.bundle.bundle import Bundle
    from nacre.compile.estimate.estimate import estimate

__all__ = [
    "Bundle",
    "Diagnostic",
    "InputError",
    "TcbImage",
    "__version__",
    "bind",
    "calibrate",
    "compile",
    "core",
    "estimate",
    "llm",
    "nac",
    "nem",
]

load_on_use(
    __name__,
    {
        "Bundle": "compile.bundle.bundle",
        "Diagnostic": "base.diagnostics",
        "InputError": "base.diagnostics",
        "TcbImage": "binding",
        "bind": "binding",
        "calibrate": None,
        "compile": "compile.api",
        "core": None,
        "estimate": "compile.estimate.estimate",
        "llm": None,
        "nac": None,
        "nem": None,
    },
)

"""The interpreter's public names, under the package name that its specification gives them."""

from nacre.base.diagnostics import Diagnostic, InputError
from nacre.nem.api.device_info import DeviceConfig
from nacre.nem.api.interpreter import NemInterpreter
from nacre.nem.run.machine.backends import ComputeBackend, register_backend
from nacre.nem.run.sessions.session import RunResult, Session

__all__ = [
    "ComputeBackend",
    "DeviceConfig",
    "Diagnostic",
    "InputError",
    "NemInterpreter",
    "RunResult",
    "Session",
    "register_backend",
]

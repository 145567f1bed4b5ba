"""Which backend an interpreter uses for which opcode."""

from __future__ import annotations

from nacre.base.diagnostics import InputError
from nacre.base.suggest import did_you_mean
from nacre.kernels.interface.call import Call, Run
from nacre.nem.run.machine.backends import (
    BackendError,
    Backends,
    ComputeBackend,
    NumpyBackend,
    SingleOutputBackend,
    bind_opcode,
    is_deterministic,
    load_backend,
    supports,
)
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.run.memory.host import host_error
from nacre.nem.run.memory.host_span import HOST
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.rules.running import RUN09

AUTO = "auto"
AnyBackend = str | ComputeBackend | SingleOutputBackend  # a name, or an object of either form


class BackendChoice:
    """A backend for all opcodes, and others for some."""

    def __init__(self) -> None:
        self._chosen: dict[str, ComputeBackend] = {"": NumpyBackend()}

    @property
    def backends(self) -> Backends:
        """By opcode; the empty key is the one for all others."""
        return dict(self._chosen)

    def use(self, backend: AnyBackend) -> None:
        """Use a backend for everything; choices for single opcodes are dropped."""
        self._chosen = {"": _load_or_refuse(backend)}

    def use_for(self, opcode: str, backend: AnyBackend) -> None:
        """Use a backend for one opcode."""
        chosen = _load_or_refuse(backend)
        named: object = opcode  # which users may get wrong
        is_supported = isinstance(named, str) and (named == "compute" or supports(chosen, named))
        # Any other name is the `op` of `compute`: Core's, or one that the backend itself knows.
        if not is_supported and opcode not in OPCODES and "." not in str(opcode):
            raise host_error(f"no opcode `{opcode}`", did_you_mean(str(opcode), OPCODES))
        if not is_supported:
            raise _unusable(f"backend `{_name(chosen)}` does not support `{opcode}`")
        self._chosen[opcode] = chosen


class FirstSupporting:
    """The first of several backends that supports an opcode."""

    name = AUTO

    def __init__(self, *backends: ComputeBackend) -> None:
        self._backends = backends
        self.deterministic = all(is_deterministic(backend) for backend in backends)

    def _backend_for(self, opcode: str) -> ComputeBackend:
        return next(b for b in self._backends if supports(b, opcode))

    def supports(self, opcode: str) -> bool:
        """Whether any of them does."""
        return any(supports(backend, opcode) for backend in self._backends)

    def bind(self, opcode: str, call: Call) -> Run:
        """The function of the first that supports the opcode."""
        return bind_opcode(self._backend_for(opcode), opcode, call)

    def execute(
        self,
        opcode: str,
        inputs: list[RegionView],
        outputs: list[RegionView],
        attrs: dict[str, object],
    ) -> object:
        """Let the first that supports the opcode compute it."""
        return self._backend_for(opcode).execute(opcode, inputs, outputs, attrs)


def _load_or_refuse(backend: AnyBackend) -> ComputeBackend:
    if not isinstance(backend, str):
        if isinstance(backend, type):
            name = backend.__name__
            raise _unusable(f"`{name}` is a class; give an object of it: `{name}()`")
        if not isinstance(backend, ComputeBackend):
            raise _unusable("a backend needs `execute` and `supports`")
        return backend
    if backend == AUTO:
        return _preferred_backend()
    try:
        return load_backend(backend)
    except BackendError as error:
        raise _unusable(str(error)) from None


def _preferred_backend() -> ComputeBackend:
    """The vendor's library where it is installed, with the kernels for what it lacks."""
    try:
        return FirstSupporting(load_backend("npm"), NumpyBackend())
    except BackendError:
        return NumpyBackend()


def _name(backend: ComputeBackend) -> str:
    return str(getattr(backend, "name", type(backend).__name__))


def _unusable(message: str) -> InputError:
    return InputError([RUN09.at(HOST, message)])

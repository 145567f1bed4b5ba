"""What carries out opcodes: the NumPy kernels, a vendor's library, or a user's own backend."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol, runtime_checkable

import numpy as np

from nacre.base.excerpt import safe
from nacre.kernels.interface.call import Array, Call, Fault, Primitive, Run, TensorType
from nacre.nem.plan.core_operations import (
    primitive_of,
    resolve_call,
    shape_problem,
    view_truths_as_bytes,
)
from nacre.nem.run.memory.arrays import RegionView
from nacre.nem.spec.opcodes import OPCODES

ENTRY_POINTS = "nacre.backends"


@runtime_checkable
class ComputeBackend(Protocol):
    """What a backend must offer. One whose results can vary sets `deterministic = False`."""

    def execute(
        self,
        opcode: str,
        inputs: list[RegionView],
        outputs: list[RegionView],
        attrs: dict[str, Any],
    ) -> object:
        """Compute an opcode into its outputs, or return the arrays that belong there."""
        ...

    def supports(self, opcode: str) -> bool:
        """Whether the backend can run an opcode; `core.NAME` stands for Core operations."""
        ...


class SingleOutputBackend(Protocol):
    """The form with one output, for backends whose opcodes have no more."""

    def execute(
        self, opcode: str, inputs: list[RegionView], output: RegionView, attrs: dict[str, Any]
    ) -> object:
        """Compute an opcode into its output, or return the array that belongs there."""
        ...

    def supports(self, opcode: str) -> bool:
        """Whether the backend can run an opcode."""
        ...


class BackendError(Exception):
    """A backend is not there, or cannot be used."""


class NumpyBackend:
    """The reference: nacre's own kernels."""

    name = "numpy"
    deterministic = True

    def supports(self, opcode: str) -> bool:
        """Whether there is a kernel for an opcode."""
        return primitive_of(opcode) is not None

    def bind(self, opcode: str, call: Call) -> Run:
        """The kernel, specialised for types and attributes."""
        primitive = primitive_of(opcode)
        if primitive is None:
            raise BackendError(f"there is no kernel for `{safe(opcode)}`")
        resolved = resolve_call(opcode, call)
        try:
            return view_truths_as_bytes(call, resolved, _bind_kernel(primitive, resolved))
        except KeyError as error:
            missing = safe(str(error.args[0]))
            raise BackendError(f"`{safe(opcode)}` lacks or does not know `{missing}`") from None

    def execute(
        self,
        opcode: str,
        inputs: list[RegionView],
        outputs: list[RegionView],
        attrs: dict[str, Any],
    ) -> None:
        """Compute an opcode into its outputs."""
        call = Call(
            tuple(_type_of(view) for view in inputs), tuple(_type_of(v) for v in outputs), attrs
        )
        fault = self.bind(opcode, call)([np.asarray(v) for v in inputs], outputs)
        if fault is not None and fault.is_fatal:
            raise ValueError(fault.message)


def _bind_kernel(primitive: Primitive, call: Call) -> Run:
    """A kernel for a call whose shapes go together."""
    problem = shape_problem(primitive, call)
    if problem is not None:
        raise BackendError(problem)
    return primitive.bind(call)


def _type_of(view: RegionView) -> TensorType:
    if view.elem is None:
        raise ValueError("an array without element type")
    return TensorType(view.elem, view.shape, view.quant)


class NpmBackend:
    """The vendor's bit-true library `NpmPyTorchApi`, as far as it offers an opcode."""

    name = "npm"
    deterministic = True
    _LIBRARY = "NpmPyTorchApi"

    def __init__(self) -> None:
        try:
            self._api: Any = importlib.import_module(self._LIBRARY)
        except ImportError as error:
            raise BackendError(
                f"backend `npm` needs the vendor's library `{self._LIBRARY}`, which is not "
                f"installed ({safe(str(error))})"
            ) from None

    def _function(self, opcode: str) -> Callable[..., Any] | None:
        prefix = "nmu" if opcode in _NMU_OPERANDS else "cstl"
        name = "gemm" if opcode == "matmul" else opcode
        return getattr(self._api, f"{prefix}_{name}", None)

    def supports(self, opcode: str) -> bool:
        """Whether the library has a function for an opcode."""
        return self._function(opcode) is not None

    def execute(
        self,
        opcode: str,
        inputs: list[RegionView],
        outputs: list[RegionView],
        attrs: dict[str, Any],
    ) -> None:
        """Call the library and copy what it returns."""
        function = self._function(opcode)
        if function is None:
            raise BackendError(f"`{self._LIBRARY}` has no function for `{opcode}`")
        names = _NMU_OPERANDS.get(opcode)
        options = _without_defaults(function, opcode, attrs)
        if inputs and _takes_precision(function, opcode):
            options = {"precision": _precision_name(inputs[0]), **options}
        if names is None:
            result = function(*inputs, **options)
        else:
            operands = dict(zip(names, [*inputs, *[None] * (3 - len(inputs))], strict=True))
            result = function(**operands, **options)
        results = result if len(outputs) > 1 else [result]
        for output, array in zip(outputs, results, strict=True):
            output[...] = np.asarray(array)


def _takes_precision(function: Callable[..., Any], opcode: str) -> bool:
    """Whether a function is told in which numbers to compute: products, and who names it."""
    if opcode in ("gemm", "matmul"):
        return True
    try:
        return "precision" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _precision_name(data: RegionView) -> str:
    """The vendor's name of the numbers that an operation computes in: `fp16`, `bf16`, `int8`."""
    if data.elem is None:
        return "fp16"
    name, bits = data.elem.name, data.elem.bits
    if data.elem.is_integer:
        return f"{'uint' if name.startswith('u') else 'int'}{bits}"
    return name if name.startswith("bf") else f"fp{bits}"


def _without_defaults(
    function: Callable[..., Any], opcode: str, attrs: dict[str, Any]
) -> dict[str, Any]:
    """Attributes without those that a function does not take and that say nothing new."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return attrs
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return attrs
    spec = OPCODES.get(opcode)
    defaults = {a.name: a.default for a in spec.attributes} if spec is not None else {}
    return {n: v for n, v in attrs.items() if n in parameters or v != defaults.get(n)}


_NMU_OPERANDS = dict.fromkeys(
    ("gemm", "matmul", "conv1d", "conv2d", "conv3d", "depthwise_conv2d"),
    ("data", "weights", "bias"),
)

_FACTORIES: dict[str, Callable[[], ComputeBackend]] = {"numpy": NumpyBackend, "npm": NpmBackend}


def register_backend(name: str, factory: Callable[[], ComputeBackend]) -> None:
    """Make a backend known under a name; installed packages use the entry point group."""
    _FACTORIES[name] = factory


def backend_names() -> tuple[str, ...]:
    """The backends that are known, whether or not they can be loaded."""
    return (*_FACTORIES, *(e.name for e in _entry_points() if e.name not in _FACTORIES))


def _entry_points() -> Sequence[Any]:
    return tuple(entry_points(group=ENTRY_POINTS))


def load_backend(name: str) -> ComputeBackend:
    """The backend of that name; BackendError says why there is none."""
    factory = _FACTORIES.get(name)
    if factory is None:
        entry_point = next((e for e in _entry_points() if e.name == name), None)
        if entry_point is None:
            known = ", ".join(f"`{known}`" for known in backend_names())
            raise BackendError(f"no backend `{safe(name)}`; known are {known}")
        try:
            factory = entry_point.load()
        except (Exception, SystemExit) as error:  # a stranger's package can fail in any way
            raise BackendError(f"backend `{safe(name)}` cannot be loaded: {error}") from None
    try:
        backend = factory()
    except BackendError:
        raise
    except (Exception, SystemExit) as error:
        raise BackendError(f"backend `{safe(name)}` cannot be made: {error}") from None
    if not isinstance(backend, ComputeBackend):
        raise BackendError(f"backend `{safe(name)}` lacks `execute` or `supports`")
    return backend


def supports(backend: ComputeBackend, opcode: str) -> bool:
    """Whether a backend says that it runs an opcode; one that fails at that runs nothing."""
    try:
        return bool(backend.supports(opcode))
    except (Exception, SystemExit):  # a stranger's code can fail in any way
        return False


def is_deterministic(backend: ComputeBackend) -> bool:
    """Whether a backend declares that equal inputs give equal bytes."""
    return bool(getattr(backend, "deterministic", False))


def bind_opcode(backend: ComputeBackend, opcode: str, call: Call) -> Run:
    """The function that runs an opcode on arrays, whatever kind of backend it is."""
    bind = getattr(backend, "bind", None)
    if bind is None:
        return _bind_through_views(backend, opcode, call)
    if str(getattr(bind, "__module__", "")).startswith("nacre."):
        run: Run = bind(opcode, call)
        return run
    return _bind_guarded(bind, opcode, call)


def _bind_guarded(bind: Callable[[str, Call], Run], opcode: str, call: Call) -> Run:
    """What a stranger's backend binds, both of which can fail in any way."""
    try:
        bound = bind(opcode, call)
    except (Exception, SystemExit) as error:
        raise BackendError(_describe_failure(error)) from None

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        try:
            return bound(inputs, outputs)
        except (Exception, SystemExit) as error:
            return Fault("backend", _describe_failure(error))

    return run


def _describe_failure(error: BaseException) -> str:
    return f"{type(error).__name__}: {safe(str(error))}"


def _bind_through_views(backend: ComputeBackend, opcode: str, call: Call) -> Run:
    takes_one = _takes_one_output(backend)
    attrs = {name: value for name, value in call.attributes.items() if name != "op"}

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        views = []
        for values, type_ in zip(inputs, call.inputs, strict=True):
            if values is not None and type_ is not None:
                view = RegionView.of(values, type_)
                view.flags.writeable = False
                views.append(view)
        # The backend fills copies, so that one that fails half-way changes nothing.
        copies = [RegionView.of(o.copy(), t) for o, t in zip(outputs, call.outputs, strict=True)]
        target: Any = copies[0] if takes_one else copies
        try:
            returned = backend.execute(opcode, views, target, dict(attrs))
            results = _results(returned, copies, call)
        except (Exception, SystemExit) as error:  # a stranger's code can fail in any way
            return Fault("backend", _describe_failure(error))
        for output, result in zip(outputs, results, strict=True):
            output[...] = result
        return None

    return run


def _results(returned: object, copies: list[RegionView], call: Call) -> list[Array]:
    if returned is None:
        results: list[Any] = list(copies)
    else:
        results = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(results) != len(call.outputs):
        raise ValueError(f"gave {len(results)} outputs, expected {len(call.outputs)}")
    for result, type_ in zip(results, call.outputs, strict=True):
        shape, dtype = np.shape(result), np.asarray(result).dtype
        if shape != type_.shape:
            raise ValueError(f"gave shape {list(shape)}, expected {list(type_.shape)}")
        if dtype != type_.dtype:
            raise ValueError(f"gave {dtype}, expected {type_.dtype}")
    return [np.asarray(result) for result in results]


def _takes_one_output(backend: ComputeBackend) -> bool:
    """Whether `execute` has the printed form with a single `output`."""
    try:
        names = list(inspect.signature(backend.execute).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) > 2 and names[2] == "output"


Backends = Mapping[str, ComputeBackend]  # by opcode; the key "" is the one for all others

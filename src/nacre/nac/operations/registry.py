"""Which kernel computes an operation: one that a user registered, ours, or that of a plugin.

A plugin is an entry point of the group `nacre.operations`, named like the operation. It is loaded
when a program asks for that operation, and never before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from nacre.base.diagnostics import InputError
from nacre.base.excerpt import backquote
from nacre.base.lazy import load_all
from nacre.base.source import whole_file
from nacre.core.opaque.calls import OpaqueCallNames
from nacre.nac.operations.operation import Kernel, Operation, ShapeFunction
from nacre.nac.operations.table import registered_kernels
from nacre.nac.program.calls import core_schema, handlers
from nacre.nac.program.in_place import out_of_place_call
from nacre.nac.rules.operations import NAC72
from nacre.nac.spec.operations import STANDARD_NAMES, call_of

GROUP = "nacre.operations"
_MOST_NAME = 255  # bytes: a length of CMAP is one
_registered: dict[str, Operation] = {}
_plugins: dict[str, Operation | str] = {}  # loaded, or why not


def register_operation(
    name: str,
    kernel: Kernel,
    shape: ShapeFunction | None = None,
    *,
    random: bool = False,
) -> None:
    """Have an operation that nacre does not know computed by a kernel, from now on.

    - `name`: as files have it, `mylib.gate.default` or `com.acme::Gate`; `nacre nac info` shows it
    - `kernel`: a function of NumPy arrays and constants, called as the operation is: operands and
      arguments in their order, what PyTorch takes by name alone and attributes of ONNX by name. It
      gives an array, or a list of them; it must not change those that it is given
    - `shape`: what the kernel gives for such arguments, without computing it: `(2, 3)`, or
      `((2, 3), "int64")` where the element type is not that of the first array, or a list of these.
      Files that `nacre.nac.build` writes say the types themselves
    - `random`: the kernel takes `rng=`, a `numpy.random.Generator` that follows from the seed

    A name that is registered again has the new kernel. InputError where nacre computes the
    operation itself, or the kernel is none.
    """
    problem = _problem(name, kernel, shape)
    if problem is not None:
        raise InputError([NAC72.at(whole_file("<register_operation>"), problem)])
    _registered[name] = Operation(kernel, shape, random)


def _problem(name: object, kernel: object, shape: object) -> str | None:
    """Why a kernel cannot be registered."""
    if not isinstance(name, str) or not 0 < len(name.encode()) <= _MOST_NAME:
        return "the name of an operation is a string of 1 to 255 bytes"
    if not callable(kernel):
        return f"the kernel of {backquote(name)} is a {type(kernel).__name__}, expected a function"
    if shape is not None and not callable(shape):
        return f"the shape of {backquote(name)} is a {type(shape).__name__}, expected a function"
    if is_of_core(name):
        return f"{backquote(name)} is computed by nacre itself"
    return None


def is_of_core(name: str) -> bool:
    """Whether an operation has a form in Core IR."""
    call = call_of(name)
    is_call = call in handlers() or out_of_place_call(call) in handlers()
    return name in STANDARD_NAMES or is_call or core_schema(name) is not None


def is_known(name: str) -> bool:
    """Whether nacre or a kernel computes an operation; a plugin is not loaded to find out."""
    return is_of_core(name) or any(
        name in known for known in (our_operations(), _registered, _entry_points())
    )


def find_operation(name: str) -> Operation | None:
    """The kernel of an operation; None where there is none. InputError where a plugin is broken."""
    return _registered.get(name) or our_operations().get(name) or _of_plugin(name)


@cache
def our_operations() -> Mapping[str, Operation]:
    """Kernels that come with nacre, by the names of their operations."""
    load_all("nacre.nac.operations.kernels")
    return MappingProxyType(dict(registered_kernels()))


def opaque_calls() -> OpaqueCallNames:
    """Calls that a model keeps where Core IR has no form for them: there is a kernel for each."""
    ours = our_operations()
    names = (name for name, operation in ours.items() if operation.is_kept)
    return OpaqueCallNames(frozenset({*names, *_registered, *_entry_points()}), frozenset(ours))


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    return MappingProxyType({point.name: point for point in entry_points(group=GROUP)})


def _of_plugin(name: str) -> Operation | None:
    point = _entry_points().get(name)
    if point is None:
        return None
    if name not in _plugins:
        _plugins[name] = _load(point)
    found = _plugins[name]
    if isinstance(found, Operation):
        return found
    message = f"the plugin of {backquote(name)} cannot be loaded: {found}"
    help_ = f"mend or remove {backquote(point.value)}, or register a kernel for the operation"
    raise InputError([NAC72.at(whole_file(f"<{GROUP}>"), message, help=help_)])


def _load(point: EntryPoint) -> Operation | str:
    """The operation of an entry point, or why it has none: a plugin may raise what it likes."""
    try:
        found = point.load()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    if isinstance(found, Operation):
        return found
    if not callable(found):
        return f"it is a {type(found).__name__}, expected a function or an `Operation`"
    return Operation(found)

"""How functions of arrays become runs: writing in place, storing, looking up, without warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import Context
from functools import partial, wraps
from typing import ParamSpec, TypeVar
from weakref import WeakSet

import numpy as np

from nacre.kernels.interface.call import Array, Fault, Run
from nacre.kernels.interface.fixed import FixableRun, FixedCall, Scratch

Calls = Callable[[Array, Array], Iterator[FixedCall]]  # from one array to another
Function = Callable[..., Array]  # function(*operands, out=None), as NumPy's own
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# NaN, infinities and what rounds to them are values here. NumPy keeps its warning settings in the
# context; running in a ready-made one costs a tenth of entering `np.errstate`.
_QUIET = Context()
_QUIET.run(np.seterr, all="ignore")
# Also without buffers in which NumPy gathers rows that are shorter than these before it computes:
# with them such rows take up to four times as long.
_SWIFT = _QUIET.copy()
_SWIFT.run(np.setbufsize, 256)


_WIDENING: WeakSet[Run] = WeakSet()


def quietly(
    function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Result:
    """The result of a function without NumPy's floating-point warnings."""
    return _QUIET.copy().run(function, *args, **kwargs)


def quiet(run: Run) -> Run:
    """The same run without NumPy's floating-point warnings."""
    return wraps(run)(_within(run, _QUIET))


def widening(run: Run) -> Run:
    """The same run, which reads inputs of f16 as f32 and may as well be given that."""
    _WIDENING.add(run)
    return run


def is_widening(run: Run) -> bool:
    """Whether a run of floats may be given f32 where its inputs are f16."""
    return run in _WIDENING


def bare_run(run: Run) -> Run:
    """What a quiet run does, for one who has seen to the warnings; any other run as it is."""
    bare: Run = getattr(run, "__wrapped__", run)
    return bare


def fix_run(
    run: Run, inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
) -> Iterator[FixedCall]:
    """The calls of a run that cannot go wrong, for one who has seen to the warnings."""
    bare = bare_run(run)
    if isinstance(bare, FixableRun):
        return bare.fix(inputs, outputs, room)
    return iter([partial(bare, inputs, outputs)])


def unbuffered(run: Run) -> Run:
    """A quiet run of operations on many short rows."""
    return _within(run, _SWIFT)


def _within(run: Run, context: Context) -> Run:
    copy = context.copy

    def run_quietly(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        # A copy, for one context cannot be entered twice, by threads or by nesting.
        return copy().run(run, inputs, outputs)

    return run_quietly


def elementwise_run(function: Function, arity: int, calls: Calls | None = None) -> Run:
    """A run that lets a function of one or two operands write into the output.

    On arrays that stay where they are it may be made of other calls.
    """
    copy = _QUIET.copy

    def fix(
        inputs: Sequence[Array | None], outputs: Sequence[Array], room: Scratch
    ) -> Iterator[FixedCall]:
        if calls is not None:
            return calls(present(inputs[0]), outputs[0])
        return iter([partial(function, *inputs[:arity], out=outputs[0])])

    def bare_unary(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        function(inputs[0], out=outputs[0])
        return None

    def bare_binary(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        function(inputs[0], inputs[1], out=outputs[0])
        return None

    # Quiet without a call between the context and the function.
    def run_unary(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        copy().run(function, inputs[0], out=outputs[0])
        return None

    def run_binary(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        copy().run(function, inputs[0], inputs[1], out=outputs[0])
        return None

    if arity == 1:
        return wraps(FixableRun(fix, bare_unary))(run_unary)
    return wraps(FixableRun(fix, bare_binary))(run_binary)


def store_run(compute: Callable[..., Array]) -> Run:
    """A run that stores what a function of the inputs gives, converted to the output's type."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        outputs[0][...] = compute(*inputs)
        return None

    return quiet(run)


def conversion_run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
    """A run that NumPy's own conversion does in one step, and without a warning."""
    np.copyto(outputs[0], present(inputs[0]), casting="unsafe")
    return None


def fill_run(fill: Callable[[Array, Array], None]) -> Run:
    """A run that fills one output from one input and cannot go wrong."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        x = inputs[0]
        assert x is not None
        fill(x, outputs[0])

    return run


def copy_run(view: Callable[[Array], Array]) -> Run:
    """A run that copies a view of its input into its output."""

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
        x = inputs[0]
        assert x is not None
        outputs[0][...] = view(x)

    return run


def lookup_run(table: Array) -> Run:
    """A run that replaces every element of 8 or 16 bits by the entry of a table at its bits."""
    bits = np.dtype(np.uint8 if table.size == 256 else np.uint16)
    take = table.take

    def run(inputs: Sequence[Array | None], outputs: Sequence[Array]) -> Fault | None:
        # No index is out of range; without `clip` NumPy would check, and work in a copy.
        take(present(inputs[0]).view(bits), out=outputs[0], mode="clip")
        return None

    return run


def all_values(dtype: np.dtype[np.generic]) -> Array:
    """Every value of an array type of 8 or 16 bits, ordered by its bits."""
    bits = 8 * dtype.itemsize
    return np.arange(1 << bits, dtype=f"u{dtype.itemsize}").view(dtype)


def present(array: Array | None) -> Array:
    """An input that is there."""
    if array is None:
        raise ValueError("an input is left out")
    return array

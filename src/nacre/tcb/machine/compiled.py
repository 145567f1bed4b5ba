"""The event loop compiled, where the extra `fast` is installed: the same source on one array.

A compiler takes seconds for every column that functions hand to each other. So all columns lie in
one array, which begins with where each of them does, and `c.end[step]` is read as
`c[c[END] + step]`. What was compiled is kept on disk beside this file, or where the compiler keeps
such things for a user, and the next process has it at once.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from nacre.base.loops.machine_code import compiled_once, is_available, is_kept
from nacre.base.term_columns import Column
from nacre.tcb.machine import event_columns, events, hardware_events
from nacre.tcb.machine.event_columns import Columns

Simulate = Callable[[Column], int]
Names = dict[str, Any]

# Instances for which plain Python takes as long as it takes to load what was compiled before, and
# as long as it takes to compile: about one second, and seven.
WORTH_LOADING = 100_000
WORTH_COMPILING = 500_000

_ENTRY = "simulate"


def is_worth_it(instances: int) -> bool:
    """Whether an image is large enough for the compiler, and the compiler there."""
    if instances < WORTH_LOADING or not is_available():
        return False
    return instances >= WORTH_COMPILING or is_kept(_machine_code())


def flatten(columns: Columns) -> tuple[Column, Columns]:
    """One array of all columns, and the columns as parts of it."""
    sizes = [len(columns._fields) + 1, *(column.size for column in columns)]
    bounds = np.cumsum(sizes)
    flat = np.concatenate([bounds, *columns])
    parts = (flat[a:b] for a, b in pairwise(bounds))
    return flat, Columns(*parts)


def simulate_flat(flat: Column) -> int:
    """`events.simulate` on the one array."""
    return int(_simulate()(flat))


@cache
def _simulate() -> Simulate:
    """The loop as machine code; once a process."""
    import numba

    found = _machine_code()
    names = found.py_func.__globals__
    if not is_kept(found):
        # Functions one by one with their types said: it need not find out for which they are asked.
        array, number = numba.int64[::1], numba.int64
        for function in events.FUNCTIONS[:-1]:
            others = function.__code__.co_argcount - 1
            callee = numba.njit((array, *[number] * others), **_OPTIONS, **_NO_WRAPPERS)
            names[function.__name__] = callee(names[function.__name__])
    found.compile((numba.int64[::1],))
    simulate: Simulate = found
    return simulate


# Nothing here makes or keeps an array: no references need be counted. And nothing divides by zero.
_OPTIONS = {"_nrt": False, "error_model": "numpy"}
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def _machine_code() -> Any:  # noqa: ANN401 - numba's own type
    """The loop, to be compiled or loaded."""
    # Machine code is kept by the name of a function, so its name says which source it is.
    text = flat_source()
    entry = f"{_ENTRY}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    names: Names = {"__name__": __name__, **_constants()}
    exec(compile(text.replace(f"def {_ENTRY}(", f"def {entry}("), __file__, "exec"), names)
    return compiled_once(names[entry])


def _constants() -> Names:
    modules = (event_columns, hardware_events, events)
    values = {name: value for module in modules for name, value in vars(module).items()}
    return {name: value for name, value in values.items() if isinstance(value, int)}


def flat_source() -> str:
    """The functions of the loop on one array, callees first."""
    return "\n\n".join(_flat_functions())


def _flat_functions() -> Iterator[str]:
    for function in events.FUNCTIONS:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        yield ast.unparse(ast.fix_missing_locations(_OnOneArray().visit(tree)))


class _OnOneArray(ast.NodeTransformer):
    """Columns that are named become parts of the one array."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without annotations and docstring."""
        for argument in node.args.args:
            argument.annotation = None
        node.returns = None
        node.body = node.body[1:]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """`c.end[step]` is `c[c[END] + step]`."""
        column = _column(node.value)
        if column is None:
            return self.generic_visit(node)
        index = ast.BinOp(_column_start(column), ast.Add(), self.visit(node.slice))
        return ast.Subscript(ast.Name("c", ast.Load()), index, node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`c.end` alone is the part of the array."""
        column = _column(node)
        if column is None:
            return node
        whole = ast.Slice(_column_start(column), _column_start(column + 1))
        return ast.Subscript(ast.Name("c", ast.Load()), whole, node.ctx)


def _column(node: ast.expr) -> int | None:
    """The number of a column that is named."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return None
    is_column = node.value.id == "c" and node.attr in Columns._fields
    return Columns._fields.index(node.attr) if is_column else None


def _column_start(number: int) -> ast.expr:
    """Where a column begins: its number names the element of the array that says so."""
    return ast.Subscript(ast.Name("c", ast.Load()), ast.Constant(number), ast.Load())

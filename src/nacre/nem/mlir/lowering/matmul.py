"""`linalg.matmul` on tiles, in `affine.for`, as a program of NEM.

Arguments are matrices in L2, which the host fills and reads. A product brings its two tiles to L1,
adds to what its third tile holds, and stores that: `linalg.matmul` adds to its output.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any

from xdsl.context import Context
from xdsl.dialects.affine import Affine, ForOp, YieldOp
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.dialects.linalg import Linalg
from xdsl.dialects.linalg.ops import MatmulOp
from xdsl.dialects.memref import MemRef, SubviewOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.nem.mlir.dialect import Nem
from nacre.nem.mlir.lowering.building import attribute, operation, task, weighted_sum
from nacre.nem.mlir.lowering.tiles import (
    Counter,
    NotLoweredError,
    Tile,
    counter,
    require_matrix,
    tile_of,
)
from nacre.nem.mlir.reading import read_module
from nacre.nem.mlir.trivia import ABOVE, BLANK
from nacre.nem.spec.rules.mlir import MLR05

_ELEMENT_BYTES = 2  # of f16
_ALIGN = 64
_HELP = "bring it into this form with upstream's passes, or write it in the dialect `nem`"
_BLANK_ABOVE = {ABOVE: [BLANK]}
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def lower(text: str, device: str, name: str) -> str:
    """A module of upstream's dialects as one of the dialect `nem`, both as text."""
    source = Source(name, text)
    read = read_module(source, upstream_context(), has_aliases=True)
    try:
        LowerMatmuls(device).apply(Context(), read.module)
    except NotLoweredError as error:
        raise InputError([MLR05.at(read.span(error.op), str(error), help=_HELP)]) from None
    printed = io.StringIO()
    Printer(printed, print_generic_format=True).print_op(read.module)
    return printed.getvalue() + "\n"


def upstream_context() -> Context:
    """The dialects that are lowered, and ours."""
    context = Context()
    for dialect in (Builtin, Affine, Arith, Func, Linalg, MemRef, Nem):
        context.load_dialect(dialect)
    return context


class LowerMatmuls(ModulePass):  # type: ignore[misc] # xDSL may be missing
    """The pass, for xDSL's pipelines."""

    name = "lower-matmuls-to-nem"

    def __init__(self, device: str = "npm_lite") -> None:
        self._device = device

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Put a program in the place of the module's function."""
        functions = [inner for inner in op.body.ops if isinstance(inner, FuncOp)]
        if len(functions) != 1 or len(list(op.body.ops)) != 1:
            raise NotLoweredError(op, "a module with one function is lowered, and no other")
        operations = _FunctionLowering(functions[0]).lower(self._device)
        functions[0].detach()
        op.body.block.add_ops(operations)


class _FunctionLowering:
    """One function on its way: what it takes, which loops are open, what is declared at the top."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._counters: dict[Any, Counter] = {}
        self._buffers: dict[Any, Any] = {}
        self._taken: set[str] = set()
        self._top: list[Operation] = []
        self._products = 0

    def lower(self, device: str) -> list[Operation]:
        """The operations of the program."""
        function = self._function
        for argument in function.body.block.args:
            rows, columns = require_matrix(function, argument.type)
            size = rows * columns * _ELEMENT_BYTES
            name = self._name(argument.name_hint, "matrix")
            self._buffers[argument] = self._buffer(name, "L2", size)
        body = self._body(function.body.block.ops)
        head = [
            operation("include", {"path": f"{device}.nem"}),
            operation("device_ref", {"target": attribute("name", device), **_BLANK_ABOVE}),
            operation("program", {"name": function.sym_name.data, **_BLANK_ABOVE}),
        ]
        return [*head, *self._top, *body]

    def _name(self, hint: str | None, other: str) -> str:
        """A name that nothing has yet, like the one in the text where NEM can have that."""
        stem = hint if hint is not None and _NAME.fullmatch(hint) else other
        name, count = stem, 1
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name

    def _buffer(self, name: str, level: str, size: int) -> Any:  # noqa: ANN401
        values = {"name": name, "level": level, "size": size, "align": _ALIGN}
        self._top.append(operation("buffer_decl", values, result="buffer"))
        return self._top[-1].results[0]

    def _body(self, ops: Iterable[Operation]) -> list[Operation]:
        operations: list[Operation] = []
        for op in ops:
            match op:
                case ForOp():
                    operations.append(self._loop(op))
                case MatmulOp():
                    operations += self._product(op)
                case SubviewOp() | YieldOp() | ReturnOp():
                    pass  # a part is looked at where it is used
                case _:
                    raise NotLoweredError(op, f"`{op.name}` is not lowered")
        return operations

    def _loop(self, op: ForOp) -> Operation:
        argument = op.body.block.args[0]
        loop_counter = counter(op, self._name(argument.name_hint, "i"))
        self._counters[argument] = loop_counter
        body = self._body(op.body.block.ops)
        values = {"variable": loop_counter.name, "first": 0, "last": loop_counter.count - 1}
        return operation("loop", values, body=body)

    def _product(self, op: MatmulOp) -> list[Operation]:
        """Bring two tiles to L1, add their product to the third, and store it."""
        self._products += 1
        left, right, sums = (tile_of(value, op, self._counters) for value in op.operands)
        inner = left.shape[1], right.shape[0]
        outer = left.shape[0], right.shape[1]
        if inner[0] != inner[1] or outer != sums.shape:
            raise NotLoweredError(op, "the shapes of the tiles do not fit")
        sources = [self._region(tile) for tile in (left, right, sums)]
        near = [self._near(tile, word) for tile, word in ((left, "a"), (right, "b"), (sums, "y"))]
        loads = [
            task("transfer", self._name(f"t{word}", "t"), ([far.results[0]], [target]), [], {})
            for word, far, target in zip("ab", sources, near, strict=False)
        ]
        accum = {"accum_type": attribute("name", "f32")}
        inputs = [near[0], near[1], sources[2].results[0]]
        tokens = [load.results[0] for load in loads]
        product = task("gemm", self._name("ty", "t"), (inputs, [near[2]]), tokens, accum)
        back = self._region(sums)
        copy = [near[2]], [back.results[0]]
        stored = task("store", self._name("ts", "t"), copy, [product.results[0]], {})
        return [*sources, *loads, product, back, stored]

    def _region(self, tile: Tile) -> Operation:
        """A tile where it lies, without a name: it stands where it is used."""
        terms = {name: factor * _ELEMENT_BYTES for name, factor in tile.terms.items()}
        strides = [tile.row_stride, 1]
        values = {
            "offset": weighted_sum(terms, tile.constant * _ELEMENT_BYTES),
            "extent": tile.extent * _ELEMENT_BYTES,
            "type": attribute("strided", "f16", list(tile.shape), strides, None),
        }
        return operation("region_decl", values, [self._buffers[tile.buffer]], result="region")

    def _near(self, tile: Tile, word: str) -> Any:  # noqa: ANN401
        """A place for a tile in L1, as large as it is."""
        size = tile.shape[0] * tile.shape[1] * _ELEMENT_BYTES
        buffer = self._buffer(self._name(f"{word}_L1", "L1"), "L1", size)
        type_ = attribute("dense", "f16", list(tile.shape), "MN", None)
        values = {"name": self._name(f"{word}_tile", "tile"), "offset": 0, "extent": size}
        region = operation("let_region", {**values, "type": type_}, [buffer], result="region")
        self._top.append(region)
        return region.results[0]

"""Operations that run by name: NEM can write them, the machine runs them, and they may be cut."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

import nacre
from nacre.base.elements import ELEMENT_TYPES, GRAPH_TYPES
from nacre.compile.legalise.forms.escape import Escape, escape_of, have_rows, independent_axes
from nacre.core.builder import Builder
from nacre.core.constants import constant_array
from nacre.core.evaluation.evaluate import evaluate
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from neminterp import NemInterpreter
from tests.compile.legalise.samples import Array, Sample, feeds_of, module_of

pytestmark = pytest.mark.sampled(2)  # together they take long

Make = Callable[[Sample], int]


def indices(sample: Sample, *shape: int) -> int:
    return sample.x(*shape, dtype="i32")


def compare(op: str) -> Make:
    return lambda s: s.add("Compare", s.x(3, 4), s.x(4), op=op)


def unary(op: str) -> Make:
    return lambda s: s.add("Unary", s.x(3, 4), op=op)


ESCAPED: dict[str, Make] = {
    **{f"compare {op}": compare(op) for op in ("Eq", "Lt", "Ge")},
    "compare integers": lambda s: s.add("Compare", indices(s, 3, 4), indices(s, 1, 4), op="Ne"),
    "where": lambda s: s.add("Where", s.x(3, 4, dtype="bool"), s.x(3, 4), s.x(4)),
    "and": lambda s: s.add("BinOp", s.x(3, 4, dtype="bool"), s.x(3, 4, dtype="bool"), op="And"),
    "xor": lambda s: s.add("BinOp", s.x(3, 4, dtype="bool"), s.x(4, dtype="bool"), op="Xor"),
    "any": lambda s: s.add("Reduce", s.x(3, 4, dtype="bool"), op="Any", axes=(1,)),
    "all": lambda s: s.add("Reduce", s.x(3, 4, dtype="bool"), op="All", axes=(0,), keepdims=True),
    "is nan": lambda s: s.add("Unary", s.x(3, 4), op="IsNan"),
    "to bool": lambda s: s.add("Cast", indices(s, 3, 4), to="bool"),
    "from bool": lambda s: s.add("Cast", s.x(3, 4, dtype="bool"), to="f32"),
    **{f"unary {op}": unary(op) for op in
       ("Erf", "Floor", "Ceil", "Round", "Sign", "Sin", "Atan", "Log1p")},
    "integer sum": lambda s: s.add("Sum", indices(s, 3, 4), axes=(1,), keepdims=False),
    "integer add": lambda s: s.add("BinOp", indices(s, 3, 4), indices(s, 4), op="Add"),
    "integer clip": lambda s: s.add("Clip", indices(s, 3, 4), min=1.0, max=2.0),
    "top values": lambda s: s.add("TopKValues", s.x(3, 8), k=3, axis=1, largest=True),
    "cumulated": lambda s: s.add("CumSum", s.x(3, 8), axis=1, exclusive=True, reverse=False),
    "cumulated product": lambda s: s.add("CumProd", s.x(3, 8), axis=0),
    "one hot": lambda s: s.add("OneHot", indices(s, 3, 2), s.x(2), depth=4, axis=1),
    "gather elements": lambda s: s.add("GatherElements", s.x(3, 5), indices(s, 3, 2), axis=1),
    "gather nd": lambda s: s.add("GatherNd", s.x(4, 4, 2), indices(s, 3, 2)),
    "gather nd batched": lambda s: s.add("GatherNd", s.x(2, 4, 2), indices(s, 2, 1), batch_dims=1),
    "gather nd of numbers": lambda s: s.add("GatherNd", s.x(7, 9), indices(s, 7, 5, 1),
                                            batch_dims=1),
    "one hot of many": lambda s: s.add("OneHot", indices(s, 3, 9), s.x(2), depth=37, axis=2),
    "one hot first": lambda s: s.add("OneHot", indices(s, 5), s.x(2), depth=5, axis=0),
    "scatter elements": lambda s: s.add("ScatterElements", s.x(3, 5), indices(s, 3, 1), s.x(3, 1),
                                        axis=1, reduction="add"),
    "scatter nd": lambda s: s.add("ScatterNd", s.x(4, 5), indices(s, 2, 1), s.x(2, 5),
                                  reduction="max"),
    "scatter rows": lambda s: s.add("ScatterRows", s.x(4, 5), indices(s, 1), s.x(1, 5)),
    "dynamic slice": lambda s: s.add("DynamicSlice", s.x(4, 5), indices(s, 2), sizes=(2, 3)),
    "dynamic update": lambda s: s.add("DynamicUpdate", s.x(4, 5), s.x(2, 3), indices(s, 2)),
    "triangle": lambda s: s.add("Trilu", s.x(2, 4, 5), upper=False, k=1),
    "response norm": lambda s: s.add("Lrn", s.x(2, 5, 3, 4), size=3, alpha=1e-3, bias=1.5),
    "diagonal": lambda s: s.add("Einsum", s.x(4, 4), equation="ii->i"),
    "filter": lambda s: s.add("Conv", s.x(1, 3, 5, 5), s.x(2, 3, 3, 3), pads=(1, 1, 1, 1)),
    "filter of as many": lambda s: s.add("Conv", s.x(4, 4, 5, 5), s.x(4, 4, 3, 3)),
    "volume": lambda s: s.add("ConvTranspose", s.x(1, 2, 3, 3, 3), s.x(2, 3, 2, 2, 2)),
    "edge": lambda s: s.add("Pad", indices(s, 3, 40), pads=(0, 18, 0, 2), mode="reflect"),
}  # fmt: skip
NARROWED: dict[str, Make] = {  # the region is narrower than the graph's result
    "largest": lambda s: s.add("ArgMax", s.x(3, 8), axis=1, keepdims=True, last=False),
    "smallest": lambda s: s.add("ArgMin", s.x(3, 8), axis=0),
    "top places": lambda s: s.add("TopKIndices", s.x(3, 8), k=2, axis=1),
}
MAKES = {**ESCAPED, **NARROWED}


def written(value: object) -> str:
    """A value as NEM writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if value.isidentifier() else f'"{value}"'
    return f"{value:.9f}" if isinstance(value, float) else str(value)


def element(type_: TensorType) -> str:
    return {"bool": "u8", "i64": "i32"}.get(type_.dtype, type_.dtype)


def run_in_nem(module: Module, feeds: dict[str, Array]) -> Array:
    """The one operation of a module as a task by name."""
    op = module.operations[-1]
    escape = escape_of(op)
    assert isinstance(escape, Escape), escape
    lines, data, names = [], {}, []
    for index, value in enumerate((*op.operands, op.value_id)):
        type_ = module.by_id[value].type
        elem, shape = element(type_), type_.shape
        count = prod(shape) * ELEMENT_TYPES[elem].bits // 8
        lines.append(f"buffer B{index} : L1 (size={count}, align=64)")
        scalar = "shape=[]" if not type_.shape else f"shape={list(shape)}"
        lines.append(f"let R{index} = region(B{index}, 0, {count}) elem={elem}, {scalar}, layout=C")
        names.append(f"R{index}")
        if value != op.value_id:
            maker = module.by_id[value]
            array = constant_array(maker)
            given = feeds[str(maker.attributes["name"])] if array is None else array
            lines.append(f"buffer A{index} : L2 (size={count}, align=64)")
            lines.append(
                f"t{index} = transfer.sync(dst=region(B{index}, 0, {count}), "
                f"src=region(A{index}, 0, {count}))"
            )
            data[f"A{index}"] = np.ascontiguousarray(given.astype(ELEMENT_TYPES[elem].dtype))
    attributes = " ".join(f"{key}={written(value)}" for key, value in escape.attributes.items())
    taken = ", ".join(names[:-1])
    lines.append(f'c = compute.sync in {taken} out {names[-1]} op="{escape.name}" {attributes}')
    interpreter = NemInterpreter()
    result = interpreter.run(interpreter.load_string("\n".join(lines) + "\n"), inputs=data)
    return np.asarray(result.read_region(names[-1]))


@pytest.mark.parametrize("name", MAKES)
def test_every_escape_runs_in_nem(name: str) -> None:
    module = module_of(MAKES[name])
    feeds = feeds_of(module)
    (expected,) = evaluate(module, feeds)
    found = run_in_nem(module, feeds)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected.astype(found.dtype))


def test_which_attributes_cannot_be_written() -> None:
    module = module_of(lambda s: s.add("Clip", indices(s, 3), max=4.0))
    assert "`min`: -inf is no number" in str(escape_of(module.operations[-1]))


@pytest.mark.parametrize("name", MAKES)
def test_leading_axes_are_independent(name: str) -> None:
    """Cut along each of these axes, the parts give the parts of the result."""
    module = module_of(MAKES[name])
    op = module.operations[-1]
    feeds = feeds_of(module)
    (whole,) = evaluate(module, feeds)
    for axis in range(independent_axes(module, op)):
        for place in range(whole.shape[axis]):
            (part,) = evaluate(*_cut(module, op, feeds, axis, place))
            np.testing.assert_array_equal(part, whole.take([place], axis))


def _cut(
    module: Module, op: CoreOperation, feeds: dict[str, Array], axis: int, place: int
) -> tuple[Module, dict[str, Array]]:
    """The operation on one place of an axis."""
    builder, given, operands = Builder(), {}, []
    rank, count = op.type.rank, op.type.shape[axis]
    is_spread = "elementwise" in OPS[op.opcode].traits
    with_rows = have_rows(module, op)
    for index, value in enumerate(op.operands):
        maker = module.by_id[value]
        array = feeds[str(maker.attributes["name"])]
        at = axis - (rank - array.ndim) if is_spread else axis
        has_axis = 0 <= at < array.ndim and array.shape[at] == count
        if has_axis if is_spread else with_rows[index]:
            array = array.take([place], at)
        given[f"o{index}"] = array
        operands.append(builder.input(f"o{index}", maker.type.dtype, array.shape))
    return builder.module(builder.add(op.opcode, *operands, **op.attributes)), given


# Operands without axes, which a task cannot have.
PLANNED: dict[str, Make] = {
    **MAKES,
    "one hot of one": lambda s: s.add("OneHot", indices(s), s.x(2), depth=5, axis=-1),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("device", ["npm4k", "npm64k"])
@pytest.mark.parametrize("name", PLANNED)
def test_a_plan_runs_it_in_parts(name: str, device: str) -> None:
    """Several engines take rows each, with those operands that have them."""
    module = module_of(PLANNED[name])
    found = nacre.compile(module, device).validate(feeds_of(module))
    assert found.first_difference is None
    assert found.verdict != "not valid", found  # truth values may all be the same


def test_some_axes_are_found() -> None:
    counts = {
        name: independent_axes(module, module.operations[-1])
        for name, make in MAKES.items()
        for module in (module_of(make),)
    }
    expected = {"compare Eq": 2, "top values": 1, "cumulated": 1, "triangle": 1, "diagonal": 0,
                "response norm": 1, "gather elements": 1, "edge": 1, "one hot": 1}  # fmt: skip
    assert {name: counts[name] for name in expected} == expected
    assert GRAPH_TYPES["bool"].bits == ELEMENT_TYPES["u8"].bits

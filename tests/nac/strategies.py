"""Files as hypothesis makes them: any legal structure, meaningful or not."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from nacre.nac.format.values import (
    Command,
    Constant,
    Data,
    Header,
    Instruction,
    NacFile,
    NameEntry,
    Plan,
    Resource,
    Tensor,
    Tick,
)
from nacre.nac.spec.constants import BOOL, FLOAT, FLOATS, INT, INTS, NULL, STRING
from nacre.nac.spec.elements import DTYPES
from nacre.nac.spec.header import VERSIONS
from nacre.nac.spec.instructions import CONSTANT_CODES, CONVERGENCE, TENSOR_CODES

U8 = st.integers(0, 255)
U16 = st.integers(0, 65535)
I16 = st.integers(-32768, 32767)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
WIDTHS = {0: 4, 1: 8, 2: 2, 3: 2, 4: 4, 5: 8, 6: 2, 7: 1, 8: 1, 9: 1}


def _tuples(values: st.SearchStrategy[Any], most: int = 4) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=most).map(tuple)


def _named(ids: st.SearchStrategy[int], texts: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    pairs = st.lists(st.tuples(ids, texts), max_size=4, unique_by=(lambda p: p[0], lambda p: p[1]))
    return pairs.map(lambda found: tuple(NameEntry(*pair) for pair in found))


@st.composite
def constants(draw: st.DrawFn) -> tuple[Constant, ...]:
    """Constants of every type; floats with any bits."""
    made = []
    for id_ in draw(st.lists(U16, max_size=5, unique=True)):
        tag = draw(st.integers(0, 6))
        payload = {
            NULL: st.just(b""),
            BOOL: st.sampled_from([b"\0", b"\1"]),
            INT: st.binary(min_size=8, max_size=8),
            FLOAT: st.binary(min_size=8, max_size=8),
            STRING: TEXT.map(str.encode),
            INTS: st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4).map(
                lambda v: struct.pack(f"<{len(v)}i", *v)
            ),
            FLOATS: st.integers(0, 4).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n)),
        }[tag]
        ignored = draw(U16) if tag == NULL else 0
        made.append(Constant(id_, tag, draw(payload), ignored))
    return tuple(made)


@st.composite
def tensors(draw: st.DrawFn) -> tuple[Tensor, ...]:
    """Weights of every type and quantisation."""
    made = []
    for id_ in draw(st.lists(U16, max_size=3, unique=True)):
        quant = draw(st.integers(0, 4))
        dtype = draw(st.sampled_from(sorted(DTYPES)))
        shape = draw(_tuples(st.integers(0, 4), 3))
        count = WIDTHS[dtype]
        for dim in shape:
            count *= dim
        data = draw(st.binary(min_size=count, max_size=count))
        some = st.integers(0, 3).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n))
        scales = draw(st.binary(min_size=4, max_size=4) if quant == 2 else some)
        given: dict[str, Any] = {}
        if quant in (2, 3, 4):
            given["scales"] = scales
        if quant == 3:
            given["axis"] = draw(U8)
        if quant == 4:
            given |= {"block": draw(U16), "true_shape": draw(_tuples(st.integers(0, 2**32 - 1), 3))}
        made.append(Tensor(id_, dtype, shape, data, quant, **given))
    return tuple(made)


@st.composite
def _system(draw: st.DrawFn, outputs: int) -> Instruction:
    kind = draw(st.sampled_from(["user", "id", "output", "yield", "branch", "converge"]))
    if kind == "user":
        return Instruction(2, 0)
    if kind == "id":
        return Instruction(2, draw(st.integers(1, 3)), (draw(st.sampled_from([1, 2])), draw(I16)))
    if kind == "output":
        c = (draw(st.sampled_from([outputs, outputs + 1])), *[draw(I16) for _ in range(outputs)])
        return Instruction(3, 0, c, tuple(draw(I16) for _ in range(outputs)))
    if kind == "yield":
        count = draw(st.integers(0, 3))
        numbers = tuple(draw(I16) for _ in range(2 * count))
        return Instruction(3, 1, (count, *numbers[:count]), numbers[count:])
    if kind == "branch":
        c = (draw(st.sampled_from([2, 3])), draw(I16), draw(I16))
        return Instruction(6, 0, c, (draw(I16),))
    count = draw(st.integers(0, 3))
    d = (draw(I16), count, *[draw(I16) for _ in range(count)])
    return Instruction(CONVERGENCE, draw(st.integers(0, 100)), (1, draw(I16)), d)


@st.composite
def _instructions(
    draw: st.DrawFn, signatures: tuple[NameEntry, ...], outputs: int
) -> tuple[Instruction, ...]:
    made = []
    known = {named.id: named.text for named in signatures if 0 < named.id <= 255}
    for _ in range(draw(st.integers(0, 6))):
        if not draw(st.booleans()):
            made.append(draw(_system(outputs)))
            continue
        variant = draw(st.sampled_from([0, *known]))
        text = known.get(variant, "")
        c: tuple[int, ...] = ()
        if set(text) & set(CONSTANT_CODES):
            ids = draw(_tuples(I16, 3))
            c = (len(ids), *ids)
        d = tuple(draw(I16) for _ in text)
        made.append(Instruction(draw(st.integers(10, 255)), variant, c, d))
    return tuple(made)


@st.composite
def files(draw: st.DrawFn) -> NacFile:
    """A file whose structure is legal: sections in any order, gaps between them."""
    version = draw(st.sampled_from(list(VERSIONS.values())))
    outputs = draw(st.integers(0, 3))
    header = Header(
        version.byte,
        draw(st.booleans()),
        draw(st.booleans()) if version.training_bit else False,
        draw(st.integers(0, version.quant_mask)),
        draw(U16),
        outputs,
        draw(U16),
        draw(U8),
        draw(st.binary(min_size=version.padding, max_size=version.padding)),
    )
    codes = st.text([*TENSOR_CODES, *CONSTANT_CODES], max_size=5)
    signatures = draw(_named(U16, codes))
    ticks = st.builds(Tick, U16, _tuples(st.builds(Command, U8, U16)))
    weights = draw(tensors()) if header.is_internal else ()
    resources = st.lists(st.builds(Resource, TEXT, st.binary(max_size=9)), max_size=3,
                         unique_by=lambda r: r.name).map(tuple)  # fmt: skip
    made: dict[str, Any] = {
        "MMAP": draw(_tuples(ticks)),
        "OPS ": draw(_instructions(signatures, outputs)),
        "CMAP": draw(_named(U16, TEXT)),
        "CNST": draw(constants()),
        "PERM": signatures,
        "DATA": Data(draw(_named(U16, TEXT)), draw(_named(U16, TEXT)), weights),
        "PROC": draw(st.binary(max_size=9)),
        "ORCH": Plan(draw(st.binary(max_size=9)), draw(constants())),
        "RSRC": draw(resources),
        "TRNG": draw(st.binary(min_size=4, max_size=9)),
        "ARRS": draw(st.binary(min_size=4, max_size=9)),
    }
    needed = {"OPS ", "PERM"}
    tags = [
        t for t in draw(st.permutations(version.sections)) if t in needed or draw(st.booleans())
    ]
    gaps = {tag: draw(st.binary(min_size=1, max_size=5)) for tag in (*tags, "")
            if draw(st.integers(0, 5)) == 0}  # fmt: skip
    # What is kept as it is reaches to where the next section begins.
    for before, after in zip(tags, (*tags[1:], ""), strict=True):
        if before in ("TRNG", "ARRS"):
            gaps.pop(after, None)
    return NacFile(header, {tag: made[tag] for tag in tags}, gaps)

"""For every code of the format a file that breaks that promise, and no other."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache

from msgspec.structs import replace

from nacre.nac.format.file import read, to_bytes
from nacre.nac.format.values import (
    Command,
    Constant,
    Data,
    Instruction,
    NacFile,
    NameEntry,
    Plan,
    Resource,
    Tensor,
    Tick,
    constant,
)
from nacre.nac.program.assembly import Assembler
from tests.nac.files import changed, headed, patched, small

Broken = bytes | NacFile


def _spliced(raw: bytes, at: int, new: bytes) -> bytes:
    return raw[:at] + new + raw[at + len(new) :]


def _offset_at(tag: str) -> int:
    tags = ("MMAP", "OPS ", "CMAP", "CNST", "PERM", "DATA", "PROC", "ORCH", "RSRC")
    return 12 + 8 * tags.index(tag)


def _moved(tag: str, offset: int) -> bytes:
    """The small file with another offset of a section."""
    return _spliced(to_bytes(small()), _offset_at(tag), struct.pack("<Q", offset))


def _start(tag: str) -> int:
    found: int = struct.unpack_from("<Q", to_bytes(small()), _offset_at(tag))[0]
    return found


def _overlapping() -> bytes:
    # A resource is said to be so long that it reaches into the next section.
    file = small()
    resources = (Resource("a", b"four"),)
    raw = to_bytes(NacFile(file.header, {"RSRC": resources, **file.sections}))
    return raw.replace(b"\x04\0\0\0four", b"\x06\0\0\0four")


def _data(**fields: object) -> NacFile:
    file = small()
    made: Data = replace(file.data, **fields)
    return changed(file, DATA=made)


def _tensor(**fields: object) -> NacFile:
    first, second = small().data.tensors
    made: Tensor = replace(first, **fields)
    return _data(tensors=(made, second))


def _raw_tensor(offset: int, new: bytes) -> bytes:
    """The small file with other bytes behind the start of the metadata of its first tensor."""
    raw = to_bytes(small())
    at = read(raw).record_offsets["DATA tensor"][0] + 14 + offset
    return _spliced(raw, at, new)


def _scheduled(*ticks: Tick) -> NacFile:
    return changed(small(), MMAP=ticks)


def _tick(tick: int, action: int, target: int) -> Tick:
    return Tick(tick, (Command(action, target),))


def _branching() -> NacFile:
    made = Assembler()
    x = made.input("x")
    chosen = made.branch(made.call("nac.gt", x, 0.0), 2, 2)
    made.end_branch(made.call("nac.neg", x))
    made.end_branch(made.call("nac.clone", x))
    made.output(chosen)
    return made.file()


def _quantized() -> NacFile:
    quant = Tensor(1, 7, (2, 3), bytes(6), 3, struct.pack("<3f", 1, 1, 1), 0)
    return _data(tensors=(quant, small().data.tensors[1]))


def _external() -> NacFile:
    return headed(_data(tensors=()), is_internal=False)


@cache
def _too_long() -> bytes:
    count = 65536  # instructions, and one for the output
    steps = (Instruction(2, 0), *[Instruction(14, 1, (), (-1,))] * (count - 1))
    last = Instruction(3, 0, (1, 0), (-1,))
    made = NacFile(
        replace(small().header, inputs=1, outputs=1),
        {
            "OPS ": (*steps, last),
            "PERM": (NameEntry(1, "T"),),
            "DATA": Data((), (NameEntry(0, "x"),)),
        },
    )
    return to_bytes(made)


BROKEN: Mapping[str, Callable[[], Broken]] = {
    "NAC02": lambda: b"GGUF" + to_bytes(small())[4:],
    "NAC03": lambda: _spliced(to_bytes(small()), 3, b"\x07"),
    "NAC04": lambda: to_bytes(small())[:-3],
    "NAC05": lambda: _moved("CNST", _start("CNST") + 1),
    "NAC06": lambda: _moved("ORCH", 1 << 40),
    "NAC07": _overlapping,
    "NAC08": lambda: _moved("OPS ", 0),
    "NAC09": lambda: headed(small(), quant=9),
    "NAC10": lambda: headed(small(), reserved=1),
    "NAC11": lambda: NacFile(small().header, small().sections, {"CNST": b"hidden"}),
    "NAC12": lambda: _spliced(to_bytes(small()), _start("PERM") + 4, b"\xff\xff\xff\x7f"),
    "NAC13": lambda: to_bytes(small()).replace(b"layer.bias", b"layer.\xff\xfe\xfd\xfc"),
    "NAC14": lambda: changed(small(), CMAP=(*small().operations, small().operations[0])),
    "NAC15": _too_long,
    "NAC16": lambda: changed(small(), RSRC=(Resource("../evil", b""),)),
    "NAC17": lambda: _spliced(to_bytes(small()), _start("CNST") + 10, b"\x09"),
    "NAC18": lambda: changed(small(), CNST=(*small().constants, Constant(99, 1, b"\x05"))),
    "NAC19": lambda: changed(
        small(), CMAP=(*small().operations, NameEntry(11, "aten.mine.default"))
    ),
    "NAC20": lambda: changed(small(), PERM=(*small().signatures, NameEntry(300, "T"))),
    "NAC21": lambda: patched(small(), 4, op=99),
    "NAC22": lambda: patched(small(), 4, variant=99),
    "NAC23": lambda: patched(small(), 5, d=(-1, 0, 0, -1)),
    "NAC24": lambda: patched(small(), 5, c=(3, 77, *small().instructions[5].c[2:])),
    "NAC25": lambda: changed(patched(small(), 4, d=(-9,)), MMAP=()),
    "NAC26": lambda: changed(small(), PERM=(*small().signatures, NameEntry(9, "Z"))),
    "NAC27": lambda: headed(small(), inputs=3),
    "NAC28": lambda: _data(inputs=(*small().data.inputs, NameEntry(4, "relu"))),
    "NAC29": lambda: changed(small(), OPS=(*small().instructions, Instruction(2, 1, (1, 1)))),
    "NAC30": lambda: patched(small(), 1, c=(1, 55)),
    "NAC31": lambda: patched(_branching(), 2, c=(2, 2, 9)),
    "NAC32": lambda: _scheduled(_tick(500, 10, 500)),
    "NAC33": lambda: _scheduled(_tick(3, 77, 3)),
    "NAC34": lambda: _scheduled(_tick(3, 10, 4)),
    "NAC35": lambda: _scheduled(_tick(1, 20, 0)),
    "NAC36": lambda: _raw_tensor(0, b"\x20"),
    "NAC37": lambda: _raw_tensor(2, struct.pack("<I", 9)),
    "NAC38": _quantized,
    "NAC39": _external,
    "NAC42": lambda: changed(small(), RSRC=(Resource("nacre.state.json", b"[]"),)),
    "NAC43": lambda: changed(small(), RSRC=(Resource("nacre.interface.json", b"{"),)),
}

# Further ways to break the same promises: a name, the code, the file.
MORE: tuple[tuple[str, str, Callable[[], Broken]], ...] = (
    ("empty", "NAC02", lambda: b""),
    ("header-cut", "NAC04", lambda: to_bytes(small())[:40]),
    ("offset-in-header", "NAC06", lambda: _moved("CNST", 5)),
    ("offset-twice", "NAC06", lambda: _moved("RSRC", _start("ORCH"))),
    ("bool-length", "NAC18", lambda: changed(small(), CNST=(Constant(1, 1, b"\0\0"),))),
    ("system-id", "NAC19", lambda: changed(small(), CMAP=(NameEntry(5, "x"),))),
    ("wide-id", "NAC19", lambda: changed(small(), CMAP=(*small().operations, NameEntry(256, "x")))),
    ("no-signature", "NAC20",
     lambda: changed(small(), PERM=(*small().signatures, NameEntry(0, "T")))),
    ("system-operation", "NAC21", lambda: patched(small(), 1, op=9, c=())),
    ("input-variant", "NAC21", lambda: patched(small(), 0, variant=7)),
    ("input-prefix", "NAC23", lambda: patched(small(), 1, c=(3, 1))),
    ("output-prefix", "NAC23", lambda: patched(small(), 7, c=(9, 0, 0))),
    ("negative-length", "NAC23", lambda: patched(small(), 5, c=(-1,))),
    ("lifted", "NAC24", lambda: patched(small(), 1, variant=3, c=(1, 70))),
    ("forward-reference", "NAC25", lambda: patched(small(), 4, d=(1,))),
    ("output-operand", "NAC25", lambda: patched(small(), 7, d=(-8, 0))),
    ("code-and-kind", "NAC26", lambda: changed(
        small(),
        CNST=tuple(constant(c.id, "x") if c.value is True else c for c in small().constants),
    )),
    ("unnamed-input", "NAC28", lambda: _data(inputs=())),
    ("empty-name", "NAC28", lambda: _data(inputs=(NameEntry(0, ""),))),
    ("no-output", "NAC29", lambda: changed(small(), OPS=small().instructions[:-1])),
    ("no-tensor", "NAC30", lambda: _data(tensors=small().data.tensors[:1])),
    ("unnamed-tensor", "NAC30", lambda: _data(parameters=small().data.parameters[:1])),
    ("branch-end", "NAC31", lambda: patched(_branching(), 2, c=(2, 1, 3))),
    ("branch-use", "NAC31", lambda: patched(_branching(), 7, d=(-4,))),
    ("yield-alone", "NAC31", lambda: patched(small(), 6, op=3, variant=1, c=(0,), d=())),
    ("ticks-in-order", "NAC32", lambda: _scheduled(_tick(4, 10, 4), _tick(3, 30, 4))),
    ("free-too-early", "NAC34", lambda: _scheduled(_tick(3, 20, 4))),
    ("forward-elsewhere", "NAC34", lambda: _scheduled(_tick(3, 30, 5))),
    ("preload-no-weight", "NAC34", lambda: _scheduled(_tick(0, 40, 4))),
    ("preload-late", "NAC34", lambda: _scheduled(_tick(4, 40, 1))),
    ("far-target", "NAC34", lambda: _scheduled(_tick(4, 20, 999))),
    ("freed-twice", "NAC35", lambda: _scheduled(_tick(6, 20, 3), _tick(7, 20, 3))),
    ("forward-of-two", "NAC35", lambda: _scheduled(_tick(4, 30, 5))),
    ("scale-type", "NAC38", lambda: _tensor(quant=2, scales=bytes(4))),
    ("axis", "NAC38", lambda: _tensor(dtype=7, data=bytes(6), quant=3, axis=4)),
    ("block", "NAC38", lambda: _tensor(dtype=7, data=bytes(6), quant=4)),
    ("blocks", "NAC38", lambda: _tensor(dtype=7, data=bytes(6), quant=4, block=4,
                                        true_shape=(9,))),
    ("block-scales", "NAC38", lambda: _tensor(dtype=7, data=bytes(6), quant=4, block=6,
                                              true_shape=(5,))),
    ("state-unknown", "NAC42", lambda: patched(small(), 1, variant=2)),
    ("state-parameter-type", "NAC42", lambda: _stated(
        dtype='"i32"', shape="[2]", initial='{"parameter": 2}')),
    ("state-huge", "NAC42", lambda: _stated(dtype='"i64"', initial="1e300")),
    ("state-half-listed", "NAC42", lambda: _stated(dtype='"i64"', initial="[1, 2.5, 3]")),
    ("state-wide", "NAC42", lambda: _stated(dtype='"i64"', initial="9223372036854775808")),
    ("state-infinite", "NAC42", lambda: _stated(initial="1e300")),
    ("state-truth", "NAC42", lambda: _stated(dtype='"bool"', initial="2")),
    ("unknown-operation", "NAC40", lambda: changed(
        small(), CMAP=(NameEntry(small().operations[0].id, "aten.lineal.default"),
                       *small().operations[1:]))),
    ("arguments", "NAC41", lambda: changed(
        small(), CMAP=(NameEntry(small().operations[0].id, "aten.relu.default"),
                       *small().operations[1:]))),
)  # fmt: skip

# Files with one finding: a name, its code, a part of its message, the file.
WORDED: tuple[tuple[str, str, str, Callable[[], Broken]], ...] = (
    ("nothing", "NAC02", "header, byte 0: is empty, expected b'NAC'", lambda: b""),
    ("padding", "NAC10", "header, byte 84: the padding is not 0",
     lambda: headed(small(), padding=b"\0\0\1\0")),
    ("cut-in-instruction", "NAC04",
     "instruction 7 at byte 470: the field D needs 4 bytes, 3 are left",
     lambda: to_bytes(_instructions_last())[:-1]),
    ("signature-of-instruction", "NAC22", "instruction 4 at byte 162: signature 99 is not in PERM",
     lambda: patched(small(), 4, variant=99)),
    ("branches-below-none", "NAC31", "instruction 2 at byte 116: -1 branches, expected 0 or more",
     lambda: patched(_branching(), 2, op=7, c=(1, -1), d=(5, -1))),
    ("operation-of-the-standard", "NAC19", "the id 10 of an operation is that of `nac.pass`",
     lambda: changed(small(), CMAP=(*small().operations, NameEntry(10, "x")))),
    ("tick", "NAC33", "MMAP, byte 102: memory command 77",
     lambda: _scheduled(_tick(3, 10, 3), _tick(5, 77, 3))),
    ("constant-twice", "NAC14", "constant 1 is defined twice",
     lambda: changed(small(), CNST=(*small().constants, small().constants[0]))),
    ("signature-twice", "NAC14", "signature 1 is defined twice",
     lambda: changed(small(), PERM=(*small().signatures, small().signatures[0]))),
    ("parameter-twice", "NAC14", "parameter 1 is defined twice",
     lambda: _data(parameters=(*small().data.parameters, NameEntry(1, "again")))),
    ("parameter-name-twice", "NAC14", "the name of parameter `layer.bias` is defined twice",
     lambda: _data(parameters=(*small().data.parameters, NameEntry(9, "layer.bias")))),
    ("input-twice", "NAC14", "input 0 is defined twice",
     lambda: _data(inputs=(*small().data.inputs, NameEntry(0, "again")))),
    ("tensor-twice", "NAC14", "the tensor of parameter 1 is defined twice",
     lambda: _data(tensors=(*small().data.tensors, small().data.tensors[0]))),
    ("resource-twice", "NAC14", "resource `a` is defined twice",
     lambda: changed(small(), RSRC=(Resource("a", b""),) * 2)),
    ("plan-constant-twice", "NAC14", "constant 1 is defined twice",
     lambda: changed(small(), ORCH=Plan(b"", (constant(1, 2), constant(1, 3))))),
    ("truth-value", "NAC18", "constant 99 is the truth value 5, expected 0 or 1",
     lambda: changed(small(), CNST=(*small().constants, Constant(99, 1, b"\x05")))),
    ("text-of-constant", "NAC13", "the string of constant 99 is no UTF-8",
     lambda: changed(small(), CNST=(*small().constants, Constant(99, 4, b"\xff")))),
    ("tensor-type", "NAC36", "tensor 1: element type 32, expected 0 to 9",
     lambda: _raw_tensor(0, b"\x20")),
    ("tensor-quantisation", "NAC36", "tensor 1: quantisation 99, expected 0 to 5",
     lambda: _raw_tensor(10, b"\x63")),
    ("tensor-axes", "NAC36", "tensor 1: a shape of 65 axes, at most 64",
     lambda: _tensor(shape=(1,) * 65, data=bytes(4))),
    ("tensor-axes-before-blocks", "NAC36", "tensor 1: a shape of 65 axes, at most 64",
     lambda: _tensor(dtype=7, data=bytes(6), quant=4, block=6, true_shape=(1,) * 65)),
    ("metadata-short", "NAC37", "tensor 1: the shape needs 12 bytes, 9 are left",
     lambda: _raw_tensor(1, b"\x03")),
    ("metadata-long", "NAC37", "tensor 1 has 12 bytes of metadata, its fields take 11",
     lambda: _raw_tensor(-12, struct.pack("<IQ", 12, 23))),
    ("tensor-bytes", "NAC37", "tensor 1 has 24 bytes, f32[9, 3] needs 108",
     lambda: _raw_tensor(2, struct.pack("<I", 9))),
    ("state-malformed", "NAC42", "nacre.state.json is malformed: ",
     lambda: changed(small(), RSRC=(Resource("nacre.state.json", b"[]"),))),
    ("interface-malformed", "NAC43", "nacre.interface.json is malformed: ",
     lambda: changed(small(), RSRC=(Resource("nacre.interface.json", b"{"),))),
    ("parameters-malformed", "NAC43", "nacre.parameters.json is malformed: ",
     lambda: changed(small(), RSRC=(Resource("nacre.parameters.json", b"\xff"),))),
    ("state-twice", "NAC42", "nacre.state.json: state 0: it is described twice",
     lambda: _stated(count=2)),
    ("state-of-no-output", "NAC42", "nacre.state.json: state 0: output 2 of 2 feeds it",
     lambda: _stated(output=2)),
    ("state-of-no-type", "NAC42", "nacre.state.json: state 0: `f99` is no element type",
     lambda: _stated(dtype='"f99"')),
    ("state-of-axes", "NAC42", "nacre.state.json: state 0: it has 65 axes, at most 64",
     lambda: _stated(shape=str([1] * 65))),
    ("state-without-elements", "NAC42",
     "nacre.state.json: state 0: [3, 0] is no shape of a tensor",
     lambda: _stated(shape="[3, 0]")),
    ("state-of-elements", "NAC42",
     "nacre.state.json: state 0: [4611686018427387904, 4] is no shape of a tensor",
     lambda: _stated(shape=f"[{2**62}, 4]")),
    ("state-of-some-elements", "NAC42", "nacre.state.json: state 0: 2 initial elements for [3]",
     lambda: _stated(initial="[1, 2]")),
    ("state-of-no-integer", "NAC42",
     "nacre.state.json: state 0: it starts as 0.5, which i64 does not hold",
     lambda: _stated(dtype='"i64"', initial="0.5")),
    ("state-of-no-parameter", "NAC42",
     "nacre.state.json: state 0: its initial value is parameter 9, which is not there",
     lambda: _stated(initial='{"parameter": 9}')),
    ("state-of-parameter", "NAC42",
     "nacre.state.json: state 0: its initial value is parameter 2, which is f32 of shape [2]",
     lambda: _stated(initial='{"parameter": 2}')),
    ("input-of-no-type", "NAC43", "nacre.interface.json: input `x`: `f33` is no element type",
     lambda: _interfaced("f33", "[1]")),
    ("input-of-axes", "NAC43", "nacre.interface.json: input `x`: it has 65 axes, at most 64",
     lambda: _interfaced("f32", str([1] * 65))),
    ("input-without-elements", "NAC43",
     "nacre.interface.json: input `x`: [0] is no shape of a tensor",
     lambda: _interfaced("f32", "[0]")),
    ("input-of-elements", "NAC43",
     "nacre.interface.json: input `x`: [4611686018427387904, 4] is no shape of a tensor",
     lambda: _interfaced("f32", f"[{2**62}, 4]")),
    ("no-such-input", "NAC43", "nacre.interface.json: input `y`: the program has no such input",
     lambda: _interfaced("f32", "[1]", "y")),
)  # fmt: skip


# Files without a finding that have as much as there may be of something.
AT_MOST: Mapping[str, Callable[[], NacFile]] = {
    "operation": lambda: changed(small(), CMAP=(*small().operations, NameEntry(255, "x"))),
    "signature": lambda: changed(small(), PERM=(*small().signatures, NameEntry(255, "T"))),
    "constant": lambda: changed(
        small(), CNST=(*small().constants, constant(99, (1,) * 65535), constant(100, "text"))
    ),
    "axes of a tensor": lambda: _tensor(shape=(1,) * 63 + (6,)),
    "axes of a state": lambda: _stated(shape=str([1] * 64)),
}


def _instructions_last() -> NacFile:
    """The small file with its instructions at the end, without what would follow them."""
    file = small()
    sections = {tag: part for tag, part in file.sections.items() if tag != "OPS "}
    return NacFile(file.header, {**sections, "OPS ": file.instructions})


def _stated(
    output: int = 0,
    dtype: str = '"f32"',
    shape: str = "[3]",
    initial: str = "0",
    count: int = 1,
) -> NacFile:
    state = (
        f'{{"id": 0, "output": {output}, "dtype": {dtype}, "shape": {shape}, "initial": {initial}}}'
    )
    text = f'{{"states": [{", ".join([state] * count)}]}}'
    return changed(small(), RSRC=(Resource("nacre.state.json", text.encode()),))


def _interfaced(dtype: str, shape: str, name: str = "x") -> NacFile:
    text = f'{{"inputs": {{"{name}": {{"dtype": "{dtype}", "shape": {shape}}}}}}}'
    return changed(small(), RSRC=(Resource("nacre.interface.json", text.encode()),))


def as_bytes(made: Broken) -> bytes:
    """The bytes of a file."""
    return made if isinstance(made, bytes) else to_bytes(made)

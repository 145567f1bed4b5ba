"""The instructions of plans, once: coding, text, documentation and the machine follow from here.

The format's text names the section and leaves its instructions open; what they are is taken from
files in use. Operands stand behind the opcode in the order of the row, little endian. Where two
versions give an instruction another meaning, the row says which one is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from nacre.core.aten.dtypes import DTYPE_WORDS
from nacre.nac.spec.elements import DTYPES

# slot and out: a byte that names a slot that is read or written; optional_out: the same, and 0 for
# none. slots and outs: a byte that counts them, then so many bytes. choice: a byte with a meaning
# of its own. model: a byte that numbers a model. const: two bytes with the id of a constant; text:
# of one that is a text. index: four bytes with the number of an instruction in a model's OPS.
# jump: two signed bytes that count from the byte behind them.
Kind = Literal[
    "slot", "out", "optional_out", "slots", "outs", "choice", "model", "const", "text", "index",
    "jump",
]  # fmt: skip
LAYOUTS: Mapping[Kind, str] = MappingProxyType(
    {
        **dict.fromkeys(("slot", "out", "optional_out", "choice", "model"), "B"),
        "const": "H", "text": "H", "index": "I", "jump": "h",
    }
)  # fmt: skip
SLOTS = 256
OURS = "ours"
# Numbers that a table of lengths in use names, without saying what they do.
RESERVED = frozenset({0x03, 0x18, 0x31, 0x50, 0x51, 0x81, 0xE1})


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand; `words` spell the values of a choice."""

    name: str
    kind: Kind
    words: Mapping[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"{self.name}: {', '.join(f'{n} {word}' for n, word in self.words.items())}"
        return f"{self.name}: {self.kind}"


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction. Rows that share an opcode are told apart by their first operand."""

    opcode: int
    mnemonic: str
    operands: tuple[Operand, ...]
    meaning: str
    version: str = "1.6"  # that has it first; OURS where the format leaves it to its readers
    is_jump: bool = False  # it says itself what comes next


def _slot(*names: str) -> tuple[Operand, ...]:
    return tuple(Operand(name, "slot") for name in names)


def _choice(name: str, **words: int) -> Operand:
    return Operand(name, "choice", MappingProxyType({n: word for word, n in words.items()}))


_OUT = Operand("out", "out")
_JUMP = Operand("target", "jump")
_MODEL = Operand("model", "model")
_SLOTS = Operand("values", "slots")
_WORDS = {name: word for word, name in DTYPE_WORDS.items()}
_DTYPE = Operand(
    "dtype", "choice", MappingProxyType({code: _WORDS[name] for code, name in DTYPES.items()})
)


def _const(name: str) -> Operand:
    return Operand(name, "const")


def _text(name: str) -> Operand:
    return Operand(name, "text")


def _index(name: str) -> Operand:
    return Operand(name, "index")


ROWS: tuple[Row, ...] = (
    Row(0x02, "src_user_prompt",
        (_OUT, _choice("type", str=0, int=1, float=2), _text("prompt")),
        "the caller's answer to a prompt; a text is read as the type, an array is taken as it is"),
    Row(0x04, "src_constant", (_OUT, _const("value")), "a constant"),
    Row(0x05, "src_exec_mode", (_OUT,),
        "what the caller wants of the plan: the text `infer`, `train` or `infer_train`", "1.8"),
    Row(0x10, "res_load_model", (_MODEL, _text("name")),
        "a model by its name: one that the caller has given, else a file of that name"
        " in the folder, or of that name with `.nac` behind it"),
    Row(0x11, "res_load_datafile", (_OUT, _choice("format", npy=2), _text("path")),
        "an array of a file in the folder"),
    Row(0x12, "res_load_extern", (_OUT, _choice("type", tokenizer=0, constant=1), _const("id")),
        "the tokenizer of a loaded model, or the constant itself"),
    Row(0x13, "res_load_dynamic", (_OUT, *_slot("path"), _choice("format", npy=2, image=3)),
        "a file in the folder, named by a value. An image becomes f32 [1, 3, 224, 224]: short side"
        " 256, middle 224, mean and deviation of ImageNet. It is a PNG of 8 or 16 bits a channel"
        " (grey, colour, palette of 8 bits; transparency is left out), a JPEG (with the extra"
        " `images`; as it is stored, not turned), a binary PPM (P6) or PGM (P5) of 8 bits; all else"
        " is refused (NAC95): WebP, GIF, PNGs that are interlaced or of 1, 2 or 4 bits, texts of"
        " pixels (P2, P3). An array in the place of a path is taken as"
        " the file's content"),
    Row(0x14, "res_load_array", (_OUT, _text("name")),
        "an array that the caller has given, or else `NAME.npy` of the file's resources", "1.8"),
    Row(0x1F, "res_unload", (_choice("type", model=0), _MODEL), "forget a model"),
    Row(0x1F, "res_unload", (_choice("type", slot=1), _OUT), "forget the value of a slot"),
    Row(0x20, "preproc_encode", (*_slot("tokenizer", "text"), _OUT), "the ids of a text"),
    Row(0x21, "preproc_decode", (*_slot("tokenizer", "ids"), _OUT), "the text of ids"),
    Row(0x22, "preproc_get_id", (*_slot("tokenizer"), _text("token"), _OUT), "the id of a token"),
    Row(0x2A, "string_format", (_OUT, _text("template"), _SLOTS),
        "a template with values in its `{}`, `{0}` and `{0:.2f}`"),
    Row(0x30, "tensor_create",
        (_OUT, _DTYPE, _choice("kind", values=0, arange=1, ones=2, zeros=3), *_slot("argument")),
        "a tensor of an element type: values or 0, 1, .. in shape [1, n], or ones or zeros of a"
        " shape"),
    Row(0x38, "tensor_manipulate", (_choice("op", pad=1), _OUT, *_slot("tensor", "width", "value")),
        "so many copies of a value before the last axis"),
    Row(0x38, "tensor_manipulate",
        (_choice("op", unsqueeze=2, squeeze=3), _OUT, *_slot("tensor", "dim")),
        "an axis of size 1 more or less", "1.8"),
    Row(0x39, "tensor_combine", (_choice("op", concat=0), _OUT, _SLOTS, *_slot("axis")),
        "tensors behind each other along an axis"),
    Row(0x3A, "tensor_info", (_choice("op", shape=0, item=2), _OUT, *_slot("tensor")),
        "the shape, or the only element as a number"),
    Row(0x3A, "tensor_info", (_choice("op", size=1), _OUT, *_slot("tensor", "dim")),
        "the size of an axis"),
    Row(0x3B, "tensor_extract", (_OUT, *_slot("tensor", "index")),
        "`t[i]` of rank 1, `t[0, i]` of rank 2 to 4"),
    Row(0x59, "sys_copy", (_OUT, *_slot("value")), "the same value in another slot"),
    Row(0x5F, "sys_debug_print", (*_slot("value"), _text("message")),
        "write a message and a value to the stream `debug`"),
    Row(0x60, "math_unary", (_choice("op", softmax=0), _OUT, *_slot("x")),
        "the softmax of the last axis"),
    Row(0x60, "math_unary",
        (_choice("op", sqrt=1, abs=2, neg=3, exp=4, reciprocal=5), _OUT, *_slot("x")),
        "a function of each element", "1.8"),
    Row(0x61, "math_binary", (_choice("op", add=0, sub=1, mul=2), _OUT, *_slot("a", "b")),
        "a function of each two elements, shapes as NumPy broadcasts them"),
    Row(0x61, "math_binary", (_choice("op", div=3, pow=4, max=5, min=6), _OUT, *_slot("a", "b")),
        "the same; `div` of integers is exact division", "1.8"),
    Row(0x62, "math_aggregate", (_choice("op", argmax=0), _OUT, *_slot("x")),
        "where the largest element of the last axis is, the first of equals"),
    Row(0x68, "logic_compare", (_choice("op", eq=0, neq=1, gt=2, lt=3), _OUT, *_slot("a", "b")),
        "a comparison of each two elements; texts are equal or not"),
    Row(0x70, "analysis_top_k",
        (*_slot("x", "k"), Operand("indices", "out"), Operand("values", "out")),
        "the k largest elements of the last axis, descending, the first of equals first", "1.8"),
    Row(0x71, "analysis_sample", (*_slot("logits", "temperature", "k"), _OUT),
        "an index drawn by the softmax of logits / temperature, of those that reach the k-th"
        " largest; k of 0 keeps all, a temperature of 0 takes the largest. The machine's seed"
        " decides", "1.8"),
    Row(0x80, "model_run_static", (_MODEL, _SLOTS, Operand("outs", "outs")),
        "run a model: its inputs in order, the first of its outputs in order"),
    Row(0x82, "model_train_step",
        (_MODEL, _choice("loss", cross_entropy=0, mse=1), _SLOTS, Operand("targets", "slots"),
         Operand("loss_out", "out"), *_slot("rate"),
         Operand("logits_out", "optional_out"), _const("weight"), _const("bias")),
        "a step down the gradient of a loss, by the parameters that two texts name, or by all where"
        " both are empty or null; the loss, and the first output before the step. The model is run"
        " with the new weights from then on", "1.8"),
    Row(0x83, "model_zero_grad", (_MODEL,),
        "nothing: no gradient is kept from one step to the next", "1.8"),
    Row(0x85, "model_save_weights",
        (_MODEL, *_slot("path"),
         _choice("type", none=0, fp16=1, int8_tensor=2, int8_channel=3, block_fp8=4, int4_group=5)),
        "write a model with its weights as they are to a `.nac` file in the folder, in that"
        " quantisation", "1.8"),
    Row(0x86, "block_set", (_MODEL, _index("instruction"), *_slot("value")),
        "an array in the place of what an instruction of a model's OPS gives, as its inputs are",
        OURS),
    Row(0x87, "block_run", (_MODEL, _index("first"), _index("last")),
        "run a block of a model's OPS anew, both ends included. A branch is in it whole or not at"
        " all; what it takes from before it was run or set; user inputs stay as they are set",
        OURS),
    Row(0x88, "block_get", (_MODEL, _index("instruction"), _OUT),
        "what an instruction of a model's OPS gave", OURS),
    Row(0xA0, "loop_start", _slot("count"),
        "do what follows up to the loop's end so many times; not at all when that is 0 or less",
        is_jump=True),
    Row(0xA1, "loop_end", (_JUMP,), "jump back unless that was the last time", is_jump=True),
    Row(0xA8, "branch_if", (*_slot("condition"), _JUMP), "jump when a value is true",
        is_jump=True),
    Row(0xA9, "break_loop_if", (*_slot("condition"), _JUMP),
        "leave the innermost loop and jump when a value is true", is_jump=True),
    Row(0xE0, "serialize", (_OUT, *_slot("value"), _choice("format", text=0, json=1, png=2)),
        "a value as text or JSON, or an image as the bytes of a PNG file"),
    Row(0xF0, "io_write",
        (*_slot("value"), _choice("stream", stdout=0, stderr=1, file=2), *_slot("path"),
         _choice("mode", write=0, append=1, plain=2)),
        "write a value to a stream or a file in the folder; texts get a new line, except in mode"
        " `plain`. The path is looked at for files only"),
    Row(0xFE, "return", (_SLOTS,), "end; the values are the outputs", is_jump=True),
    Row(0xFF, "halt", (), "end without outputs", is_jump=True),
)  # fmt: skip


def _rows_by_opcode() -> dict[int, tuple[Row, ...]]:
    """Rows by opcode; a plan must never mean two things."""
    by_opcode: dict[int, tuple[Row, ...]] = {}
    for row in ROWS:
        by_opcode[row.opcode] = (*by_opcode.get(row.opcode, ()), row)
    for opcode, rows in by_opcode.items():
        first = [n for row in rows for n in (row.operands[0].words if row.operands else ())]
        is_single = len(rows) == 1
        assert is_single or len(first) == len(set(first)) >= len(rows), f"{opcode:#x} is ambiguous"
        assert opcode not in RESERVED
    return by_opcode


ROWS_OF_OPCODE: Mapping[int, tuple[Row, ...]] = MappingProxyType(_rows_by_opcode())
ROWS_OF_MNEMONIC: Mapping[str, tuple[Row, ...]] = MappingProxyType(
    {rows[0].mnemonic: rows for rows in ROWS_OF_OPCODE.values()}
)
assert len(ROWS_OF_MNEMONIC) == len(ROWS_OF_OPCODE)


def documentation() -> str:
    """The table for a page, in Markdown."""
    lines = ["| byte | instruction | operands | meaning | since |", "|---|---|---|---|---|"]
    for row in ROWS:
        operands = "; ".join(map(str, row.operands))
        cells = (f"`{row.opcode:02X}`", f"`{row.mnemonic}`", operands, row.meaning, row.version)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"

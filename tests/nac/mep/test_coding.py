"""The table, and what follows from it: bytes, text, documentation."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.nac.format.values import Constant, Plan, constant
from nacre.nac.mep import assemble, disassemble
from nacre.nac.mep.coding import Step, decode_steps, encode_step
from nacre.nac.mep.operations.catalogue import operations
from nacre.nac.mep.program import program_of, read, to_bytes
from nacre.nac.mep.table import RESERVED, ROWS, ROWS_OF_OPCODE, documentation
from tests.nac.mep.programs import plans
from tests.nac.mep.running import codes_of

# Lengths behind the opcode, counted by hand from the layouts that files in use have. None: more
# than one, or as many as the instruction counts itself. Blocks of OPS (0x86 to 0x88) are ours: the
# format promises them and gives them no bytes.
LENGTHS = {
    0x02: 4, 0x04: 3, 0x05: 1, 0x10: 3, 0x11: 4, 0x12: 4, 0x13: 3, 0x14: 3, 0x1F: 2, 0x20: 3,
    0x21: 3, 0x22: 4, 0x2A: None, 0x30: 4, 0x38: None, 0x39: None, 0x3A: None, 0x3B: 3, 0x59: 2,
    0x5F: 3, 0x60: 3, 0x61: 4, 0x62: 3, 0x68: 4, 0x70: 4, 0x71: 4, 0x80: None, 0x82: None, 0x83: 1,
    0x85: 3, 0x86: 6, 0x87: 9, 0x88: 6, 0xA0: 1, 0xA1: 2, 0xA8: 3, 0xA9: 3, 0xE0: 3, 0xF0: 4,
    0xFE: None, 0xFF: 0,
}  # fmt: skip


def test_the_table_has_the_instructions_of_files_in_use() -> None:
    assert ROWS_OF_OPCODE.keys() == LENGTHS.keys()


@pytest.mark.parametrize("opcode", [o for o, length in LENGTHS.items() if length is not None])
def test_an_instruction_is_as_long_as_in_files_in_use(opcode: int) -> None:
    for row in ROWS_OF_OPCODE[opcode]:
        step = Step(row, tuple(min(operand.words, default=0) for operand in row.operands))
        assert len(encode_step(step)) == step.size == 1 + (LENGTHS[opcode] or 0)


# One instruction of each shape, bytes written by hand.
BYTES = [
    ("src_user_prompt %3, int, $258", b"\x02\x03\x01\x02\x01"),
    ("string_format %1, $258, [%2, %3]", b"\x2a\x01\x02\x01\x02\x02\x03"),
    ("tensor_create %1, int64, arange, %2", b"\x30\x01\x05\x01\x02"),
    ("tensor_manipulate pad, %1, %2, %3, %4", b"\x38\x01\x01\x02\x03\x04"),
    ("tensor_manipulate squeeze, %1, %2, %3", b"\x38\x03\x01\x02\x03"),
    ("tensor_combine concat, %1, [%2, %3, %4], %5", b"\x39\x00\x01\x03\x02\x03\x04\x05"),
    ("tensor_info shape, %1, %2", b"\x3a\x00\x01\x02"),
    ("tensor_info size, %1, %2, %3", b"\x3a\x01\x01\x02\x03"),
    ("math_binary pow, %1, %2, %3", b"\x61\x04\x01\x02\x03"),
    ("model_run_static 7, [%1, %2], [%3]", b"\x80\x07\x02\x01\x02\x01\x03"),
    ("io_write %1, file, %2, append", b"\xf0\x01\x02\x02\x01"),
    ("return []", b"\xfe\x00"),
    ("x: branch_if %1, x", b"\xa8\x01\xfc\xff"),
    ("loop_start %9\nx: loop_end x", b"\xa0\x09\xa1\xfd\xff"),
    ("branch_if %1, x\nhalt\nx: break_loop_if %2, x", b"\xa8\x01\x01\x00\xff\xa9\x02\xfc\xff"),
]


@pytest.mark.parametrize(("text", "raw"), BYTES, ids=[text for text, _ in BYTES])
def test_text_and_bytes(text: str, raw: bytes) -> None:
    declared = '.const 258 = "a text"\n'
    made = assemble(declared + text)
    record = struct.pack("<HBH", 258, 4, 6) + b"a text"
    assert made == b"ORCH" + struct.pack("<II", len(raw), 1) + raw + record
    assert assemble(disassemble(made)) == made


@given(plans())
def test_instructions_and_bytes_are_inverses(plan: Plan) -> None:
    steps, starts = decode_steps(plan.bytecode)
    assert b"".join(map(encode_step, steps)) == plan.bytecode
    assert list(starts) == [sum(s.size for s in steps[:i]) for i in range(len(steps))]
    assert read(to_bytes(plan)) == plan


@given(plans())
def test_text_and_plans_are_inverses(plan: Plan) -> None:
    raw = to_bytes(plan)
    text = disassemble(raw)
    assert assemble(text) == raw
    assert disassemble(assemble(text)) == text
    assert disassemble(plan) == text


@given(st.binary(max_size=40))
def test_any_bytes_are_a_plan_or_refused(raw: bytes) -> None:
    plan = Plan(raw, (constant(0, "a"), constant(1, 1)))
    found = codes_of(lambda: program_of(plan))
    assert set(found) <= {"NAC82", "NAC83", "NAC84", "NAC85", "NAC86"}
    if not found:
        assert b"".join(map(encode_step, program_of(plan).steps)) == raw


@pytest.mark.parametrize("opcode", sorted(RESERVED))
def test_a_reserved_number_is_refused(opcode: int) -> None:
    with pytest.raises(InputError, match=f"instruction 0 at byte 12: 0x{opcode:02X} is reserved"):
        program_of(Plan(bytes([opcode, 0, 0]), ()))


def test_constants_keep_their_bytes() -> None:
    nan = struct.pack("<Q", 0x7FF8000000000123)
    pool = (
        Constant(5, 3, nan), Constant(1, 0, b"", 7), Constant(9, 6), Constant(2, 5),
        constant(3, (0.1, -0.0)), constant(4, -0.0), constant(6, 'a "b" \\ ; \n\u2028\U0001f600'),
        constant(7, float("-inf")), constant(8, (2**31 - 1, -(2**31))), constant(10, True),
    )  # fmt: skip
    raw = to_bytes(Plan(b"", pool))
    text = disassemble(raw)
    assert assemble(text) == raw
    assert len(text.splitlines()) == len(pool)
    assert '.const 5 = raw 3 0 "230100000000f87f"' in text


def test_the_machine_has_a_function_for_each_instruction() -> None:
    assert {mnemonic for mnemonic, _ in operations()} == {r.mnemonic for r in ROWS}


def test_the_documentation_has_a_line_for_each_row() -> None:
    lines = documentation().splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert all(line.count("|") == 6 for line in lines)
    assert lines[2].startswith(
        "| `02` | `src_user_prompt` | out: out; type: 0 str, 1 int, 2 float;"
    )

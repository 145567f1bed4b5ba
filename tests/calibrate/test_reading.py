"""Tables of measurements: what they say, and a case for each way of saying nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.diagnostics import InputError
from nacre.base.source import Source
from nacre.calibrate.measurements import Measurement, ModelFile, NemFile
from nacre.calibrate.reading import measurements_of, read_measurements
from nacre.calibrate.table import parse_table
from nacre.calibrate.workloads import Workload
from tests.effort import scaled


def read(text: str) -> tuple[Measurement, ...]:
    return measurements_of(parse_table(Source("rows.csv", text)), Path("folder"))


def findings(text: str) -> list[tuple[str, int, str]]:
    """Code, line and message of everything that is wrong with a table."""
    with pytest.raises(InputError) as error:
        read(text)
    return [(d.code, d.location.line, d.message) for d in error.value.diagnostics]


def test_a_row_is_an_operation_a_program_or_a_model() -> None:
    rows = read(
        "operation,program,model,inputs,strides,groups,elem,precision,time,unit,group,class,note\n"
        "conv2d,,,1x8x8x16 3x3x16x32,2x2,1,f16,,12.5,us,layer 1,conv,a note\n"
        ",plan.nem,,,,,,,3000,cycles,,,\n"
        ",,net.onnx,,,,,i8,1.5,ms,net,,\n"
    )
    assert rows[0].subject == Workload(
        "conv2d", ((1, 8, 8, 16), (3, 3, 16, 32)), "f16", {"strides": (2, 2), "groups": 1}
    )
    assert (rows[0].group_name, rows[0].class_name) == ("layer 1", "conv")
    assert [row.amount for row in rows] == pytest.approx([12.5, 3000, 1500])
    assert [row.subject for row in rows[1:]] == [
        NemFile(Path("folder/plan.nem")),
        ModelFile(Path("folder/net.onnx"), "i8"),
    ]
    assert [row.class_name for row in rows[1:]] == ["program", "model"]


def test_the_name_of_a_column_may_carry_the_unit() -> None:
    (row,) = read("operation,bytes,from,to,us\ntransfer,4096,DDR,L2,2.5\n")
    assert row.subject == Workload("transfer", size_bytes=4096, source="DDR", target="L2")
    assert row.amount == pytest.approx(2.5)


def test_empty_lines_and_quoted_cells_are_nothing_odd() -> None:
    rows = read('operation,inputs,cycles\r\n\r\n"relu","4x16",7\r\n,,\r\n')
    assert [str(row.subject) for row in rows] == ["relu 4x16 i8"]


HEAD = "operation,inputs,cycles\n"
TIMED = "operation,inputs,time,unit\n"
COPIES = "operation,bytes,from,to,cycles\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("CAL01", 1, "the table is empty")]),
        (HEAD, [("CAL01", 1, "the table has no row")]),
        ("operation,inputs,inputs,cycles\nrelu,4,4,1\n",
         [("CAL01", 1, "column `inputs` is named 2 times")]),
        ("operation,,cycles\nrelu,4,1\n", [("CAL01", 1, "column 2 has no name")]),
        (f"{HEAD}relu,4x4,1\nrelu,4x4\nrelu,4x4,1,2\n",
         [("CAL01", 3, "the row has 2 cells, the header has 3"),
          ("CAL01", 4, "the row has 4 cells, the header has 3")]),
        (f'{HEAD}relu,"4x4,1\n', [("CAL01", 2, "this is no CSV: unexpected end of data")]),
        (f"{HEAD}relu,{'4' * 5000},1\n",
         [("CAL01", 2, "a cell has 5,000 characters, at most 4,096")]),
        (f"{HEAD}relu,{'4' * 200_000},1\n",
         [("CAL01", 2, "this is no CSV: field larger than field limit (131072)")]),
        ("operation,input,cycles\nrelu,4,1\n",
         [("CAL02", 1, "nothing is known about column `input`")]),
        ("inputs,note\n4,x\n",
         [("CAL02", 1, "no column says what was measured: one of `operation`, `program`, `model`"),
          ("CAL02", 1, "no column says how long it took: one of `time`, `cycles`, `ns`, `us`, "
                       "`ms`, `s`")]),
        ("operation,inputs,ms,us\nrelu,4,1,1\n",
         [("CAL02", 1, "`us`, `ms` are several columns of times, expected one")]),
        ("operation,inputs,time\nrelu,4,1\n",
         [("CAL02", 1, "`time` and `unit` are given together, or the unit names the column")]),
        (f"{HEAD}relu,4,0\nrelu,4,-3\nrelu,4,\nrelu,4,nan\nrelu,4,inf\nrelu,4,1e17\nrelu,4,0x10\n",
         [("CAL03", 2, "the time is 0, expected a positive number"),
          ("CAL03", 3, "the time is -3, expected a positive number"),
          ("CAL03", 4, "the time is missing, expected a positive number"),
          ("CAL03", 5, "the time is `nan`, expected a positive number"),
          ("CAL03", 6, "the time is `inf`, expected a positive number"),
          ("CAL03", 7, "the time is 1e+17 cycles, expected 1 to 9.0072e+15"),
          ("CAL03", 8, "the time is `0x10`, expected a positive number")]),
        (f"{TIMED}relu,4,0.1,ns\nrelu,4,2000000,s\n",
         [("CAL03", 2, "the time is 1e-10 s, expected 1e-09 to 1e+06"),
          ("CAL03", 3, "the time is 2e+06 s, expected 1e-09 to 1e+06")]),
        (f"{TIMED}relu,4,1,msec\nrelu,4,1,\n",
         [("CAL04", 2, "the unit is `msec`, expected one of `cycles`, `ns`, `us`, `ms`, `s`"),
          ("CAL04", 3, "the unit is missing, expected one of `cycles`, `ns`, `us`, `ms`, `s`")]),
        (f"{HEAD}conv3,4,1\ncompute,4,1\n,4,1\nrelu,,1\nrelu,4x-1,1\n",
         [("CAL05", 2, "`conv3` is no operation"),
          ("CAL05", 3, "`compute` is no operation"),
          ("CAL05", 4, "the row names no workload, expected one of `operation`, `program`, "
                       "`model`"),
          ("CAL05", 5, "`inputs` is missing: a shape for each input of the task"),
          ("CAL05", 6, "`4x-1` are no shapes such as `1x56x56x64 3x3x64x64`")]),
        ("operation,program,inputs,cycles\nrelu,p.nem,4,1\n,p.nem,4,1\n",
         [("CAL05", 2, "the row names `operation`, `program`, expected one of `operation`, "
                       "`program`, `model`"),
          ("CAL05", 3, "`inputs` is for operations, the row names a file")]),
        (f"{COPIES}transfer,,L2,L1,9\ntransfer,0,L2,L1,9\ntransfer,64,L2,L4,9\ntransfer,64,,L1,9\n",
         [("CAL05", 2, "`bytes` is missing, expected a positive integer"),
          ("CAL05", 3, "`bytes` is `0`, expected a positive integer"),
          ("CAL05", 4, "`to` is `L4`, expected one of `DDR`, `L2`, `L1`"),
          ("CAL05", 5, "`from` is missing, expected `DDR`, `L2`, `L1`")]),
        ("operation,inputs,elem,axis,perm,keepdims,cycles\nrelu,4,i9,,,,1\nsoftmax,4,,x,,,1\n"
         "transpose,4,,,1-0,,1\nreduce_sum,4,,,,1,1\n",
         [("CAL05", 2, "`elem` is `i9`, expected one of `i4`, `i8`, `i16`, `i32`, `u8`, `u16`, "
                       "`u32`, `f16`, `bf16`, `f32`"),
          ("CAL05", 3, "`axis` is `x`, expected an integer"),
          ("CAL05", 4, "`perm` is `1-0`, expected integers such as `2x2`"),
          ("CAL05", 5, "`keepdims` is `1`, expected `true` or `false`")]),
        ("model,precision,cycles\nm.onnx,i7,1\n",
         [("CAL05", 2, "`i7` is no precision, expected `f16`, `f32`, `i8`, `w8f16`, `w4f16`")]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_all_at_once(text: str, expected: list[tuple[str, int, str]]) -> None:
    assert findings(text) == expected


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"operation,inputs,cycles\nrelu,\xff,1\n", "byte 0xff at offset 29 is not UTF-8"),
        (b"operation,inputs,cycles\nrelu,\0,1\n", "character 29 is NUL: this is a binary file"),
    ],
)
def test_what_is_no_text_is_no_table(raw: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(raw)
    with pytest.raises(InputError) as error:
        read_measurements(path)
    assert [(d.code, d.message) for d in error.value.diagnostics] == [
        ("CAL01", f"`rows.csv`: {reason}")
    ]


def test_a_table_that_is_missing_has_a_code(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_measurements(tmp_path / "rows.csv")
    assert [d.code for d in error.value.diagnostics] == ["CAL01"]


@settings(max_examples=scaled(300), deadline=None)
@given(st.text(alphabet='operatin,inputs,cycles\n"x1234567890.-eE', max_size=200) | st.text())
def test_no_text_is_more_than_refused(text: str) -> None:
    for head in ("", HEAD, COPIES, TIMED):
        try:
            codes = ["CAL" for row in read(head + text) if row.time > 0]
        except InputError as error:
            codes = [d.code[:3] for d in error.diagnostics]
        assert set(codes) == {"CAL"}

"""Elements in bytes: every layout against loops over single elements and nibbles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.kernels.interface.layouts import layout
from nacre.nem.model.program import Buffer
from nacre.nem.run.memory.memory import POISON, MemoryLevel, Storage
from nacre.nem.run.memory.written import first_unwritten, mark_written
from neminterp import NemInterpreter
from tests.nem.run.tensors import SIZE, Case, cases, some_bytes, some_flags, values_for

seeds = st.integers(0, 1 << 32)


@given(cases(), seeds)
def test_reading_takes_each_element_from_its_bytes(case: Case, seed: int) -> None:
    data = some_bytes(seed)
    found = case.layout.array(data, case.offset)
    assert found.shape == case.shape
    for index in case.indices:
        assert found[index].tobytes() == case.stored(index, data.tobytes())


@given(cases(), seeds)
def test_writing_puts_each_element_into_its_bytes_and_nothing_else(case: Case, seed: int) -> None:
    data, values = some_bytes(seed), values_for(case, seed)
    before = data.tobytes()
    case.layout.put(data, case.offset, values)
    after = data.tobytes()
    for index in case.indices:
        assert case.stored(index, after) == values[index].tobytes()
    touched = set(case.touched)
    assert all(after[b] == before[b] for b in range(SIZE) if b not in touched)


@given(cases(), seeds)
def test_what_was_written_is_read(case: Case, seed: int) -> None:
    data, values = some_bytes(seed), values_for(case, seed)
    case.layout.put(data, case.offset, values)
    assert case.layout.array(data, case.offset).tobytes() == values.tobytes()


@given(cases(("i4",)), seeds)
def test_writing_nibbles_leaves_the_other_half_of_a_byte(case: Case, seed: int) -> None:
    data = some_bytes(seed)
    before = data.tobytes()
    case.layout.put(data, case.offset, values_for(case, seed))
    written = {2 * case.offset + case.number(index) for index in case.indices}
    for nibble in range(2 * SIZE):
        if nibble not in written:
            old, new = (d[nibble // 2] >> (4 * (nibble % 2)) & 15 for d in (before, data.tobytes()))
            # A dense tensor owns its last byte: the spare nibble is 0.
            is_spare = case.layout.is_dense and nibble == max(written) + 1 and nibble % 2
            assert new == (0 if is_spare else old)


@given(cases(), seeds)
def test_a_view_is_the_bytes_themselves(case: Case, seed: int) -> None:
    data, made = some_bytes(seed), case.layout
    assert made.is_view == (case.elem != "i4")
    if made.is_view:
        made.array(data, case.offset)[...] = 0
        assert not data[case.touched].any()


@given(cases(), seeds)
def test_the_span_ends_with_the_last_element(case: Case, seed: int) -> None:
    assert case.layout.span == case.touched[-1] + 1 - case.offset
    assert not case.layout.is_dense or len(case.touched) == case.layout.span


@given(cases(), seeds)
def test_an_element_is_flagged_if_all_its_bytes_are(case: Case, seed: int) -> None:
    mask = some_flags(seed)
    found = case.layout.flags(mask, case.offset)
    for index in case.indices:
        assert bool(found[index]) == all(mask[byte] for byte in case.bytes_of(index))
    assert case.layout.holds(mask, case.offset) == bool(mask[case.touched].all())


@given(cases(), seeds)
def test_a_byte_is_flagged_if_all_its_elements_are(case: Case, seed: int) -> None:
    mask = some_flags(seed)
    before, flags = mask.copy(), np.random.default_rng(seed).integers(0, 3, case.shape) > 0
    case.layout.put_flags(mask, case.offset, flags)
    expected = before.copy()
    expected[case.touched] = True
    for index in case.indices:
        if not flags[index]:
            expected[case.bytes_of(index)] = False
    assert (mask == expected).all()


@given(cases(), st.booleans(), seeds)
def test_one_flag_serves_all_elements(case: Case, flag: bool, seed: int) -> None:
    mask = some_flags(seed)
    expected = mask.copy()
    expected[case.touched] = flag
    case.layout.put_flags(mask, case.offset, flag)
    assert (mask == expected).all()


def the_buffer() -> Buffer:
    program = NemInterpreter().load_string(f"buffer A : L1 (size={SIZE})\n")
    return program.plan.program.buffers[0]


BUFFER = the_buffer()


def storage_with(written: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Storage:
    level = MemoryLevel("L1[0]", SIZE)
    level.written[:] = written
    return Storage(BUFFER, level, 0)


def first_gap(case: Case, written: list[bool]) -> tuple[int, int] | None:
    missing = [byte for byte in case.touched if not written[byte]]
    if not missing:
        return None
    high = missing[0]
    while high in missing:
        high += 1
    return missing[0], high


@given(cases(), seeds)
def test_the_first_gap_is_that_of_the_elements(case: Case, seed: int) -> None:
    storage = storage_with(some_flags(seed))
    found = first_unwritten(case.layout, storage, case.offset)
    assert found == first_gap(case, storage.written.tolist())


@given(cases(), seeds)
def test_marking_keeps_count_of_what_is_missing(case: Case, seed: int) -> None:
    storage = storage_with(some_flags(seed))
    flags = np.random.default_rng(seed).integers(0, 3, case.shape) > 0
    for given_flags in (flags, True, ~flags):
        mark_written(case.layout, storage, case.offset, given_flags)
        assert storage.missing == SIZE - int(storage.written.sum())


@pytest.mark.parametrize(
    ("shape", "strides"), [((1, 4), (99, 1)), ((3, 1), (1, 7)), ((1, 1, 1), (5, 6, 7))]
)
@pytest.mark.parametrize("elem", ["i4", "i8", "f32"])
def test_the_stride_of_a_single_element_does_not_matter(
    elem: str, shape: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    made = layout(ELEMENT_TYPES[elem], shape, strides)
    assert made.is_dense
    assert made.span == layout(ELEMENT_TYPES[elem], shape).span


@pytest.mark.parametrize("elem", list(ELEMENT_TYPES))
def test_a_stride_of_zero_reads_one_element_again(elem: str) -> None:
    case = Case(elem, (3, 2), (0, 1), 1)
    data = some_bytes(1)
    found = case.layout.array(data, 1)
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
    assert found[0, 1].tobytes() == case.stored((0, 1), data.tobytes())


def test_poison_reads_as_nan_and_minus_one() -> None:
    data = np.full(8, POISON, np.uint8)
    for elem in ELEMENT_TYPES.values():
        value = layout(elem, (1,)).array(data, 1)[0]
        if elem.kind == "float":
            assert np.isnan(float(value))
        elif elem.kind == "signed":
            assert int(value) == -1

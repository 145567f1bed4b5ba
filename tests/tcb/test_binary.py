"""Images as bytes: one encoding each, within bounds, and as the page says."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.base.binary.cursor import Broken
from nacre.base.compression_forms import CompressionForm
from nacre.base.diagnostics import InputError
from nacre.base.terms import LoopVariable, Operation, fits_int64
from nacre.tcb.binary.columns import read_periodic
from nacre.tcb.binary.container import MAGIC
from nacre.tcb.binary.encoding import decode, encode, features_of
from nacre.tcb.binary.pools import ReadPools
from nacre.tcb.block_table import FEATURES, PERIODS, RECORDS
from nacre.tcb.image import Block, Image, Machine, Quant, Repeat, Tag, TagSet
from nacre.tcb.text.disassembly import disassemble
from tests.damaged_files import mutate_sealed
from tests.effort import scaled
from tests.tcb import second_reader
from tests.tcb.broken import COPY, Value, changed, copying, counting, reading, sealed, with_items
from tests.tcb.samples import sample, sample_with_host_values
from tests.tcb.strategies import images

pytestmark = pytest.mark.sampled(2)  # together they take long


@settings(max_examples=scaled(80))
@given(images())
def test_bytes_and_image_are_inverses(image: Image) -> None:
    data = encode(image)
    again = decode(data)
    assert again == image
    assert encode(again) == data
    assert disassemble(again) == disassemble(image)


def test_values_that_python_calls_equal_are_told_apart() -> None:
    values = (1, True, 1.0, 0.0, -0.0, False, "1", (1,))
    attributes = tuple((f"a{at}", value) for at, value in enumerate(values))
    image = copying(attributes=attributes)
    found = decode(encode(image)).streams[0].items[0]
    assert isinstance(found, Block)
    assert repr(found.attributes) == repr(attributes)
    blocks = [changed(COPY, attributes=(("a", value),)) for value in values]
    data = encode(with_items(*blocks))
    read = [item.attributes[0][1] for item in decode(data).streams[0].items]  # type: ignore[union-attr]
    assert repr(read) == repr(list(values))


def test_what_repeats_is_there_once() -> None:
    quant = Quant(tuple(0.1 * n for n in range(1, 65)), (0,) * 64, 0)
    blocks = [
        changed(b, position=at)
        for at, b in enumerate([reading(quant=quant).streams[0].items[0]] * 50)
    ]
    assert len(encode(with_items(*blocks))) < len(encode(with_items(blocks[0]))) + 100


def test_a_file_has_the_features_that_it_uses() -> None:
    assert features_of(sample_with_host_values()) == set(FEATURES) - {PERIODS}
    assert features_of(sample()) == set(FEATURES) - {"host_values", PERIODS}
    assert features_of(counting(range(16))) == {PERIODS}
    assert features_of(counting(range(15))) == set()
    assert features_of(with_items(COPY)) == set()
    form = CompressionForm("sparse")
    assert features_of(reading(compression=form)) == {"compression"}
    assert b"compression" not in encode(with_items(COPY))[:40]


def test_fields_with_a_feature_can_be_left_out() -> None:
    featured = [f for record in RECORDS.values() for f in record.fields if f.feature]
    assert {field.feature for field in featured} == set(FEATURES) - {PERIODS}
    assert all(field.default is not ... for field in featured)


@pytest.mark.parametrize(
    "build",
    [
        lambda: copying(burst=1 << 63),
        lambda: copying(op="\ud800"),
        lambda: copying(kind="taks"),
        pytest.param(
            lambda: with_items(*[changed(COPY, position=0)] * 40_000),
            marks=pytest.mark.heavy("writes 40,000 blocks"),
        ),
    ],
)
def test_what_no_reader_would_take_is_not_written(build: Callable[[], Image]) -> None:
    with pytest.raises(InputError) as refused:
        encode(build())
    assert [d.code for d in refused.value.diagnostics] == ["TCB36"]


def test_a_repeat_takes_bytes_as_its_text_does_not_as_its_iterations() -> None:
    sizes = [len(encode(with_items(Repeat(0, n, (COPY,))))) for n in (10, 1_000_000)]
    assert sizes[1] - sizes[0] < 8


# Counts that rise


WIDE = st.integers(-(1 << 63), (1 << 63) - 1)


@settings(max_examples=scaled(60))
@given(st.lists(WIDE | st.integers(-9, 9), min_size=14, max_size=60), st.integers(1, 18))
def test_counts_of_any_kind_are_read_as_they_were(steps: list[int], period: int) -> None:
    rising = [step + (at // period) * 1500 for at, step in enumerate(steps)]
    for values in (steps, [value for value in rising if fits_int64(value)]):
        image = counting(values)
        data = encode(image)
        assert decode(data) == image
        expected = plain(image)
        assert with_defaults(expected, second_reader.read(data)) == expected


@pytest.mark.parametrize("turns", range(1, 17))
def test_counts_that_rise_evenly_in_turns_take_no_bytes(turns: int) -> None:
    def size(blocks: int) -> int:
        values = [at // turns * (1000 + at % turns) + at % turns for at in range(blocks)]
        image = counting(values)
        return len(encode(image)) - len(encode(counting([0] * blocks)))

    assert size(200) - size(100) < 12


def test_a_file_from_before_periods_is_read() -> None:
    image = counting(range(40))
    before = encode(image, features_of(image) - {PERIODS})
    assert b"periods" not in before
    assert decode(before) == image
    expected = plain(image)
    assert with_defaults(expected, second_reader.read(before)) == expected


@pytest.mark.parametrize("period", [-1, 17, 1 << 62])
def test_a_period_is_a_small_number(period: int) -> None:
    class Columns:
        pools = ReadPools(0, [], b"")

        def column(self, count: int) -> list[int]:
            return [period] * count

    with pytest.raises(Broken, match="period"):
        read_periodic(16, Columns())


def test_sets_have_periods_too() -> None:
    sets = (TagSet(Tag(0, at), 1, 1500 * at) for at in range(40))
    blocks = [Block("join", at, sets=(one,)) for at, one in enumerate(sets)]
    image = with_items(*blocks)
    assert decode(encode(image)) == image
    assert len(encode(image)) < len(encode(image, frozenset())) - 30


# As the page says


def plain(value: Value) -> Value:
    """A value of an image as the second reader gives it."""
    if isinstance(value, LoopVariable):
        return ("c", value.depth)
    if isinstance(value, Operation):
        return (value.op, plain(value.left), plain(value.right))
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def with_defaults(value: Value, read: Value) -> Value:
    """What was read, and the defaults of fields that its file has no feature for."""
    if isinstance(value, dict):
        absent = {key: one for key, one in value.items() if key not in read}
        assert set(absent) <= {f.name for r in RECORDS.values() for f in r.fields if f.feature}
        return {key: with_defaults(one, read.get(key, one)) for key, one in value.items()}
    if isinstance(value, list):
        assert len(value) == len(read)
        return [with_defaults(a, b) for a, b in zip(value, read, strict=True)]
    return read


@settings(max_examples=scaled(60))
@given(images())
def test_a_second_reader_reads_the_same(image: Image) -> None:
    expected = plain(image)
    assert repr(with_defaults(expected, second_reader.read(encode(image)))) == repr(expected)


def test_a_second_reader_reads_the_sample() -> None:
    expected = plain(sample())
    assert with_defaults(expected, second_reader.read(encode(sample()))) == expected


# Files that are nearly right


def mutated(draw: random.Random, data: bytes) -> bytes:
    """A file with a few changes, and mostly the checksums that it needs."""
    return mutate_sealed(draw, data, sealed)


def outcome(data: bytes) -> str:
    """The code of a refusal, or `exact` where a file is that of what it says."""
    try:
        image = decode(data)
    except InputError as error:
        return refusal(error)
    assert encode(image) == data
    return "exact"


def refusal(error: InputError) -> str:
    """The one code of a file that is refused."""
    (finding,) = error.diagnostics
    assert finding.code.startswith("TCB1") or finding.code == "TCB36", finding
    return finding.code


EMPTY = Machine("m", "", "u", "ab", 1, (), (), ())
SEEDS = (
    sample,
    lambda: with_items(COPY),
    lambda: Image("p", EMPTY, (), (), ()),
    lambda: counting(n // 3 * 1500 + n % 3 for n in range(48)),
)


@pytest.mark.fuzz
@pytest.mark.heavy("a file at a time is what is tried")
def test_mutated_files_are_refused_or_exact() -> None:
    draw = random.Random(27)
    files = [encode(seed()) for seed in SEEDS]
    outcomes = [outcome(mutated(draw, draw.choice(files))) for _ in range(scaled(1500))]
    assert "exact" in outcomes, "some changes make another image"


def test_every_cut_is_noticed() -> None:
    data = encode(sample())
    for size in range(len(MAGIC), len(data)):
        assert outcome(data[:size]) == "TCB10", size

"""Bytes from strangers: a code for every broken promise; what is accepted is exact."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nacre import nem
from nacre.base.binary.columns import write_columns
from nacre.base.binary.cursor import ByteWriter
from nacre.base.binary.texts import write_texts
from nacre.base.diagnostics import InputError
from nacre.base.rendering import render_text, to_json
from nacre.base.source import Source
from nacre.nem.bytecode.container import FEATURES, Member, write_file
from nacre.nem.bytecode.document import COMMENTS, POSITIONS, TEXTS, TREE, write_document
from nacre.nem.bytecode.library import BytecodeSource, RefusedSource, bytecode_source
from nacre.nem.bytecode.magic import MAGIC
from nacre.nem.bytecode.packing import content_of, pack, pack_contents, unpack
from nacre.nem.bytecode.sources import read_program
from nacre.nem.bytecode.tree_writer import tree_columns
from nacre.nem.checks.engine import CheckOptions, check_source
from tests.damaged_files import mutate_sealed
from tests.effort import scaled

pytestmark = pytest.mark.sampled(2)  # together they take long

PROGRAM = """\
# head
include "npm4k.nem"

device npm4k

program p:

const N = 4 * (2 + 1)
buffer X : DDR (size=64, align=64)  # in
buffer L : L1[0] (size=64)
let q = per_channel(axis=-1, scales=[0.5, 1.0e-3], zero_points=[0, 0])
let v = region(L, 0, 64) elem=i8, shape=[64], layout=C, quant=q @materialized
loop i in [0..3] @max_in_flight(2):
    t = transfer.async(dst=region(L, 16 * i, 16), src=region(X, 16 * i, 16)) @resource(DMA[i mod 2])
    # between
    u = relu.async in v out v deps=[t] saturate=true op="a\\"b"
    wait(t, u)
endloop
"""


def sealed(data: bytes) -> bytes:
    """Bytes with the checksum that they need."""
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little")


def codes(data: bytes) -> list[str]:
    found = bytecode_source(data, "f.nemb")
    assert all(d.help for d in found.parsed.diagnostics)
    return [d.code for d in found.parsed.diagnostics]


def changed(**sections: bytes | None) -> bytes:
    """The file of the program with some sections exchanged, or left out."""
    tags = {"texts": TEXTS, "tree": TREE, "comments": COMMENTS, "positions": POSITIONS}
    made = dict(write_document(content_of(Source("f.nem", PROGRAM))))
    for name, content in sections.items():
        if content is None:
            made.pop(tags[name])
        else:
            made[tags[name]] = content
    return write_file([Member("", True, made)])


def tree_of(text: str) -> tuple[bytes, bytes]:
    made = write_document(content_of(Source("f.nem", text)))
    return made[TEXTS], made[TREE]


def texts_of(names: list[str], numbers: list[str] = [], texts: list[str] = []) -> bytes:  # noqa: B006
    out = ByteWriter()
    for pool in (names, numbers, texts):
        write_texts(out, pool)
    return out.content()


def file_of(texts: bytes, tree: bytes) -> bytes:
    return write_file([Member("", True, {TEXTS: texts, TREE: tree})])


def test_the_program_itself_is_sound() -> None:
    assert codes(pack(PROGRAM)) == []
    assert unpack(pack(PROGRAM)) == PROGRAM


def test_byt01_every_cut_is_noticed() -> None:
    data = pack(PROGRAM)
    for size in range(len(MAGIC), len(data)):
        assert codes(data[:size])[0] in ("BYT01", "BYT02"), size


def test_byt01_a_wrong_checksum_and_bytes_behind_the_end() -> None:
    data = pack(PROGRAM)
    assert codes(data[:-1] + bytes([data[-1] ^ 1])) == ["BYT01"]
    assert codes(sealed(data[:-4] + b"\0" + data[-4:])) == ["BYT01"]


def test_byt02_other_files_and_other_versions(tmp_path: Path) -> None:
    assert codes(b"NEMB" + bytes(32)) == ["BYT02"]
    data = bytearray(pack(PROGRAM))
    data[len(MAGIC)] = 2
    assert codes(sealed(bytes(data))) == ["BYT02"]
    path = tmp_path / "text.nemb"
    path.write_text(PROGRAM)
    found = read_program(path)
    assert isinstance(found, RefusedSource)
    assert found.finding.code == "BYT02"


def test_byt03_unknown_features_are_refused_by_name() -> None:
    out = ByteWriter()
    out.raw(MAGIC)
    out.varint(1)
    out.varint(1 << len(FEATURES))
    out.text("time-travel")
    found = bytecode_source(sealed(out.content() + bytes(4)), "f.nemb")
    (problem,) = found.parsed.diagnostics
    assert problem.code == "BYT03"
    assert "`time-travel`" in problem.message


def test_byt04_tables_that_cannot_be() -> None:
    made = write_document(content_of(Source("f.nem", PROGRAM)))
    assert codes(changed(tree=None)) == ["BYT04"]
    for name in ("/etc/x.nem", "../x.nem", "a//b.nem", "a\\b.nem", "./x.nem"):
        assert codes(write_file([Member(name, True, made)])) == ["BYT04"]
    assert codes(write_file([Member("a", True, made), Member("a", True, made)])) == ["BYT04"]
    assert codes(write_file([Member("a", False, made), Member("b", True, made)])) == ["BYT04"]


def test_byt05_positions_outside_the_source() -> None:
    other = write_document(content_of(Source("f.nem", "const   X = 1\n")))
    foreign = bytearray(other[POSITIONS])
    at = 1 + 32  # behind the name and the hash: the size of the text
    assert foreign[at] == len("const   X = 1\n")
    foreign[at] = 5
    made = write_file([Member("", True, {**other, POSITIONS: bytes(foreign)})])
    assert codes(made) == ["BYT05"]


UGLY = """\
include   "npm_lite.nem"
device d extends npm_lite { opcode.extended { gemm.float<bf16>.no_bias }  spec_version="NEM-1.0" }
program p:
buffer X:L2(align=8,size=64)
buffer Y : L2 (size = 64)
loop i in [0 .. 3]   @max_in_flight(2):
  t=transfer.async(src=region(X,16*i+1,16),dst=region(Y,16*i,16)) # a
  wait( t )
endloop
"""


def placed(**moved: Sequence[int]) -> bytes:
    """The file of a text that is not canonical, some of its positions moved: by which, from, to."""
    found = content_of(Source("f.nem", UGLY))
    assert found.foreign is not None
    columns = {name: getattr(found.foreign.places, name).copy() for name in moved}
    for name, (at, value) in moved.items():
        columns[name][at] = value
    there = replace(found.foreign, places=replace(found.foreign.places, **columns))
    return write_file([Member("", True, write_document(replace(found, foreign=there)))])


def numbers_of(kind: str) -> list[int]:
    """Which nodes of the text are of a kind, as the file counts them."""
    nodes = tree_columns(content_of(Source("f.nem", UGLY)).document).nodes
    return [at for at, node in enumerate(nodes) if type(node).__name__ == kind]


def test_the_ugly_program_itself_is_sound() -> None:
    data = placed()
    assert codes(data) == []
    assert require_exact(data)


@pytest.mark.parametrize("field", ["starts", "ends"])
def test_byt05_positions_that_no_text_has(field: str) -> None:
    """Whichever position is moved to wherever: it is refused, or every place is one."""
    draw = random.Random(5)
    count = len(list(tree_columns(content_of(Source("f.nem", UGLY)).document).nodes))
    for _ in range(scaled(60)):
        data = placed(**{field: (draw.randrange(count), draw.randrange(len(UGLY)))})
        assert codes(data) in ([], ["BYT05"])
        require_places(data)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("RegionExpr", "starts", 0),  # outside what it is a part of
        ("NameRef", "ends", len(UGLY)),  # longer than its name
        ("IntLit", "starts", UGLY.index("wait")),
        ("DeviceConfig", "starts", 3),  # over its neighbours
        ("VariantRef", "starts", UGLY.index(".no_bias")),
        ("Wait", "starts", UGLY.index("loop i")),
        ("EndLoop", "starts", UGLY.index("loop i")),
    ],
)
def test_byt05_parts_stand_within_what_they_are_parts_of(kind: str, field: str, value: int) -> None:
    found = [codes(placed(**{field: (at, value)})) for at in numbers_of(kind)]
    assert found == [["BYT05"]] * len(found) != []


def test_byt05_words_without_a_node_stand_before_their_value() -> None:
    start, end = UGLY.index("spec_version"), UGLY.index('"NEM-1.0"')
    assert codes(placed(words=(0, end))) == []
    for value in (0, 5, end + 1, UGLY.index("program")):
        assert codes(placed(words=(0, value))) == ["BYT05"], value
    assert codes(placed(words=(0, start))) == []


@pytest.mark.parametrize("name", ["a/b.nem", "/etc/hostname", "../../x", "..", ".", "a\0b"])
def test_byt05_names_that_are_those_of_no_file(name: str, tmp_path: Path) -> None:
    found = content_of(Source("f.nem", "const   X = 1\n"))
    assert found.foreign is not None
    named = replace(found, foreign=replace(found.foreign, name=name))
    data = write_file([Member("", True, write_document(named))])
    assert codes(data) == ["BYT05"]
    path = tmp_path / "f.nemb"
    path.write_bytes(data)
    assert [d.code for d in nem.check(path)] == ["BYT05"]


@pytest.mark.parametrize("name", ["a\\b.nem", "...", "a\nb", "a:b.nem", "\x1b[31m", "", " "])
def test_odd_names_of_files_are_taken_as_they_are(name: str, tmp_path: Path) -> None:
    found = content_of(Source("f.nem", "const   X = Y\n"))
    assert found.foreign is not None
    named = replace(found, foreign=replace(found.foreign, name=name))
    path = tmp_path / "f.nemb"
    path.write_bytes(write_file([Member("", True, write_document(named))]))
    (finding,) = nem.check(path)
    assert finding.location.file == str(tmp_path / (name or "f.nemb"))


def test_a_file_whose_name_is_no_text_is_packed(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.nem")
    path.write_text("const   X = 1\n")
    source = read_program(path)
    assert isinstance(source, Source)
    assert codes(pack_contents([("", True, content_of(source))])) == []


def test_byt06_what_is_not_in_its_shortest_form() -> None:
    assert codes(changed(tree=tree_of(PROGRAM)[1] + b"\0")) == ["BYT06"]
    texts, tree = tree_of("const X = Y\n")
    assert codes(file_of(texts_of(["X", "Y", "Z"]), tree)) == ["BYT06"]
    assert codes(file_of(texts, tree)) == []


def test_byt07_counts_are_bounded_before_anything_is_made() -> None:
    out = ByteWriter()
    out.varint(1 << 40)
    write_columns(out, [])
    assert codes(file_of(texts_of([]), out.content())) == ["BYT07"]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["1x", "Y"], "const X = Y\n"),
        (["X", "a b"], "const X = Y\n"),
        (["X", ""], "const X = Y\n"),
        (["X", "Y.z"], "const X = Y\n"),
        (["t", "tranfser", "L"], "t = relu.async in L out L\n"),
        (["t", "transfer", "L"], "t = relu.async in L out L\n"),
        (["X", "endloop"], "const X = Y\n"),
    ],
)
def test_byt08_names_that_no_text_has_there(names: list[str], text: str) -> None:
    assert codes(file_of(texts_of(names), tree_of(text)[1])) == ["BYT08"]


def test_byt09_a_library_needs_the_name_of_a_program() -> None:
    made = content_of(Source("f.nem", PROGRAM))
    data = pack_contents([("a.nem", True, made), ("b.nem", True, made)])
    assert codes(data) == ["BYT09"]
    assert bytecode_source(data, "f.nemb", None, "b.nem").parsed.diagnostics == ()
    (problem,) = bytecode_source(data, "f.nemb", None, "c.nem").parsed.diagnostics
    assert problem.code == "BYT09"
    assert "`a.nem`" in problem.message


# Files that are nearly right


def mutated(draw: random.Random, data: bytes) -> bytes:
    """A file with a few changes, and mostly the checksum that it needs."""
    return mutate_sealed(draw, data, sealed)


def require_places(data: bytes) -> None:
    """Whatever is accepted can be checked, and everything in it stands somewhere."""
    source = bytecode_source(data, "f.nemb")
    if isinstance(source, RefusedSource):
        return
    for node in tree_columns(source.parsed.document).nodes:
        assert source.span(node.start, node.end).location.line
    assert len(source.text) == source.size
    for finding in check_source(source, CheckOptions()).diagnostics:
        assert render_text([finding])
        assert to_json(finding)


def require_exact(data: bytes) -> bool:
    """Whether a file is accepted; then it is the file of what it says."""
    try:
        text = unpack(data)
    except InputError as error:
        if [d.code[:3] for d in error.diagnostics] != ["BYT"]:
            raise
        return False
    source = bytecode_source(data, "f.nemb")
    assert isinstance(source, BytecodeSource)
    assert pack_contents([(source.member, True, source.content)]) == data
    if source.content.foreign is None and not source.member:
        assert pack(text) == data
    require_places(data)
    return True


SEEDS = [PROGRAM, PROGRAM.replace("  # in", " #in"), UGLY, "const X = 1\n", "# only\n"]


@pytest.mark.fuzz
@pytest.mark.heavy("a file at a time is what is tried")
def test_mutated_files_are_refused_or_exact() -> None:
    draw = random.Random(26)
    files = [pack(text) for text in SEEDS]
    accepted = sum(require_exact(mutated(draw, draw.choice(files))) for _ in range(scaled(2000)))
    assert accepted, "some changes make another program"


@pytest.mark.parametrize("is_compressed", [False, True])
def test_flags_say_whether_regions_are_compressed(is_compressed: bool) -> None:
    ending = ", compressed=sparse" if is_compressed else ""
    text = f"buffer A : L2 (size=8)\nr = region(A, 0, 8) elem=i8, shape=[8], layout=C{ending}\n"
    made = write_document(content_of(Source("f.nem", text)))
    assert codes(write_file([Member("", True, made, is_compressed)])) == []
    assert codes(write_file([Member("", True, made, not is_compressed)])) == ["BYT06"]
    old = pack(text)
    assert (b"compressed" in old[:40]) == is_compressed  # the feature, by its name


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that stand for little whatever their bytes, and that are written unread."""
    monkeypatch.setattr("nacre.nem.bytecode.container.MIN_BYTECODE_NODES", 1 << 11)
    monkeypatch.setattr("nacre.nem.bytecode.packing._require_readable", lambda data: None)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("text", ["wait(t)\n", "const a = 1\n", "# again\n"])
def test_few_bytes_do_not_stand_for_many_of_anything(text: str) -> None:
    assert codes(pack(text * 100 + "const b = 1\n")) == []
    data = pack(text * 8_000 + "const b = 1\n")
    assert len(data) < 300
    assert codes(data) == ["BYT07"]


@pytest.mark.usefixtures("small_files")
def test_texts_are_bounded_by_the_bytes_that_stand_for_them() -> None:
    name = "n" * 500
    assert codes(pack(f"const {name} = 1\n" * 100)) == []
    assert codes(pack(f"const {name} = 1\n" * 1_000)) == ["BYT07"]
    assert codes(pack(f"# {name}\n" * 1_000)) == ["BYT07"]


def test_documents_of_a_library_share_what_small_files_may_stand_for() -> None:
    often, one = (content_of(Source("f.nem", "wait(t)\n" * n)) for n in (5_000, 1))
    assert pack_contents([("a", True, often), ("b", True, one)])
    with pytest.raises(InputError) as refused:
        pack_contents([("a", True, often), *((f"{n}", True, one) for n in range(15))])
    assert [d.code for d in refused.value.diagnostics] == ["BYT07"]


def test_what_would_not_be_read_again_is_not_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.nem.bytecode.container.MIN_BYTECODE_NODES", 1 << 11)
    with pytest.raises(InputError) as refused:
        pack("wait(t)\n" * 8_000)
    (finding,) = refused.value.diagnostics
    assert finding.code == "BYT07"
    assert finding.help == "write what repeats as a `loop`"

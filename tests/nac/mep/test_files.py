"""Files and images: only in the folder, only what they say they are, pixels as others see them."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import sys
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.nac.format.file import to_bytes
from nacre.nac.mep import Machine, assemble
from nacre.nac.mep.budget import Budget
from nacre.nac.mep.files import read_npy
from nacre.nac.mep.images import prepare_image, read_image, write_png
from nacre.nac.mep.values import Fault
from nacre.nac.program.assembly import Assembler
from tests.nac.mep.carrying import successor
from tests.nac.mep.running import Successor, codes_of, refused, run

LOAD = 'src_user_prompt %p, str, "p"\nres_load_dynamic %x, %p, {}\nreturn [%x]'
NPY, IMAGE = LOAD.format("npy"), LOAD.format("image")
WRITE = 'src_user_prompt %p, str, "p"\nsrc_constant %t, "text"\nio_write %t, file, %p, {}'


def npy(array: Any, **given: Any) -> bytes:  # noqa: ANN401
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **given)
    return stream.getvalue()


def budget(steps: int = 10**6, bytes_: int = 10**9) -> Budget:
    return Budget(steps, bytes_)


# Paths


ESCAPES = ["../secret.npy", "a/../../secret.npy", "/etc/passwd", "a//b", "./a.npy", "a/./b", "",
           "..", "a\\..\\b", "C:x", "a\0b", "a\nb", "~/x:y", "link.npy", "inside/secret.npy",
           "x" * 2000, "folder", "missing.npy", "pipe", "a.npy/b", "x" * 300]  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no links and FIFOs on this system")
    folder = tmp_path / "root"
    (folder / "folder").mkdir(parents=True)
    (folder / "a.npy").write_bytes(npy([1, 2]))
    (folder / "folder/b.npy").write_bytes(npy([3.5]))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.npy").write_bytes(npy([42]))
    (tmp_path / "secret.npy").write_bytes(npy([42]))
    os.symlink(outside / "secret.npy", folder / "link.npy")
    os.symlink(outside, folder / "inside")
    os.mkfifo(folder / "pipe")
    return folder


def test_files_of_the_folder_are_read(root: Path) -> None:
    assert run(NPY, {"p": "a.npy"}, root=root)[0].tolist() == [1, 2]
    assert run(NPY, {"p": "folder/b.npy"}, root=str(root))[0].tolist() == [3.5]
    (made,) = run('res_load_datafile %x, npy, "a.npy"\nreturn [%x]', root=root)
    assert made.tolist() == [1, 2]


@pytest.mark.parametrize("path", ESCAPES)
def test_no_path_leads_out_of_the_folder(root: Path, path: str) -> None:
    before = sorted(root.parent.rglob("*"))
    for text in (NPY, IMAGE, WRITE.format("write"), WRITE.format("append")):
        if path in ("missing.npy",) and "file" in text:
            continue
        found = refused(text, {"p": path}, root=root, may_write=True)
        assert found.code == "NAC94", found.message
    model = f"res_load_model 0, $p\n.const p = {json.dumps(path)}"
    assert refused(model, root=root).code == "NAC94"
    assert sorted(root.parent.rglob("*")) == before


def test_a_model_is_found_by_its_name_with_and_without_a_suffix(root: Path) -> None:
    load = 'res_load_model 0, "{}"\nhalt'
    found = refused(load.format("draft"), root=root, models={"model": Successor()})
    assert found.code == "NAC94"
    assert found.help == "looked for `draft` and `draft.nac` in the folder; given are `model`"
    assert refused(load.format("b.nac"), root=root).help == "looked for `b.nac` in the folder"
    found = refused(load.format("draft"), models={"model": Successor()})
    assert found.help == "give the machine a `root`"
    file = to_bytes(nac.lower(successor()))
    (root / "draft.nac").write_bytes(file)
    for name in ("draft", "draft.nac"):
        assert run(load.format(name), root=root) == []
    (root / "draft").write_bytes(b"none")  # the name itself comes first
    assert refused(load.format("draft"), root=root).code == "NAC97"


def test_findings_of_a_model_of_the_folder_stand_at_its_file(root: Path) -> None:
    file = to_bytes(nac.lower(successor()))
    (root / "folder/draft.nac").write_bytes(file[:-9])
    with pytest.raises(InputError) as caught:
        run('res_load_model 0, "folder/draft"\nhalt', root=root)
    _, *of_the_file = caught.value.diagnostics
    assert of_the_file
    assert {d.span.source.name for d in of_the_file} == {str(root / "folder/draft.nac")}
    (root / "folder/draft.nac").write_bytes(file)
    wrong = """
        res_load_model 0, "folder/draft"
        src_constant %v, [1.5]
        model_run_static 0, [%v], [%y]
        return [%y]
    """
    with pytest.raises(InputError) as caught:
        run(wrong, root=root)
    names = {d.span.source.name for d in caught.value.diagnostics[1:]}
    assert names == {str(root / "folder/draft.nac")}


def test_without_a_folder_there_are_no_files(root: Path) -> None:
    assert refused(NPY, {"p": "a.npy"}).code == "NAC94"
    assert refused(WRITE.format("write"), {"p": "a.npy"}, root=root).code == "NAC94"
    assert (root / "a.npy").read_bytes() == npy([1, 2])


def test_files_are_written(root: Path) -> None:
    for mode, wanted in (("write", "text\n"), ("append", "text\ntext\n"), ("plain", "text")):
        run(WRITE.format(mode), {"p": "folder/t.txt"}, root=root, may_write=True)
        assert (root / "folder/t.txt").read_text() == wanted


def test_a_model_of_the_folder_is_run(root: Path) -> None:
    made = Assembler()
    made.output(made.call("nac.neg", made.input("x")))
    (root / "m.nac").write_bytes(to_bytes(made.file()))
    text = """
        res_load_model 0, "m.nac"
        src_constant %v, [1.5, -2.0]
        model_run_static 0, [%v], [%y]
        return [%y]
    """
    (y,) = run(text, root=root)
    assert y.tolist() == [-1.5, 2.0]
    (root / "m.nac").write_bytes(b"NAC" + bytes(100))
    assert refused(text, root=root).code == "NAC97"


# Arrays


@pytest.mark.parametrize(
    "array",
    [np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array(2.5), np.array(["a", "bé"]),
     np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(3, dtype=">i4"),
     np.array([True, False]), np.arange(3, dtype=np.float16), np.array(["é"], ">U3")],
    ids=str,
)  # fmt: skip
def test_arrays_are_read_as_numpy_reads_them(array: Any) -> None:  # noqa: ANN401
    made = read_npy(memoryview(npy(array)), "a", budget())
    np.testing.assert_array_equal(made, array)
    assert made.dtype == array.dtype.newbyteorder("=")
    for version in ((1, 0), (2, 0)):
        again = read_npy(memoryview(npy(array, version=version)), "a", budget())
        np.testing.assert_array_equal(again, array)


SOUND = npy(np.arange(6, dtype=np.float32).reshape(2, 3))


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x93NUMPY", SOUND[:9], SOUND[:-1], SOUND + b"x", npy(np.array([object()])),
     npy(np.zeros(2, "c16")), npy(np.zeros(2, [("a", "i4")])), npy(np.zeros(2, "M8[s]")),
     SOUND.replace(b"(2, 3)", b"(9, 9)"), SOUND.replace(b"'<f4'", b"'<U0'"),
     SOUND.replace(b"{'descr'", b"{[[[[[[]"), SOUND.replace(b"(2, 3)", b"(-2,3)"),
     npy(np.array(["a"])).replace(b"a\0\0\0", b"\0\xd8\0\0"),
     npy(np.array(["a"])).replace(b"a\0\0\0", b"\0\0\0\x7f")],
)  # fmt: skip
def test_files_that_are_no_arrays(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(raw)
    found = refused(NPY, {"p": "a.npy"}, root=tmp_path)
    assert found.code == "NAC95"


def test_an_array_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(np.zeros(100_000)))
    assert refused(NPY, {"p": "a.npy"}, root=tmp_path, max_bytes=2**20).code == "NAC89"
    assert refused(NPY, {"p": "a.npy"}, root=tmp_path, max_steps=100).code == "NAC88"


@given(st.data())
def test_any_byte_of_an_array_another(data: Any) -> None:  # noqa: ANN401
    raw = bytearray(SOUND)
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for hostile in (bytes(raw), bytes(raw[:cut])):
        found = codes_of(lambda raw=hostile: read_npy(memoryview(raw), "a", budget()))  # type: ignore[misc]
        assert set(found) <= {"NAC95"}


# Images


def filtered(pixels: Any, kinds: list[int]) -> bytes:  # noqa: ANN401
    """The lines of a PNG, each under a filter, by the words of its specification."""
    height, width, pixel = pixels.shape
    made = bytearray()

    def at(row: int, column: int, c: int) -> int:
        return int(pixels[row, column, c]) if row >= 0 and column >= 0 else 0

    for row in range(height):
        made.append(kinds[row % len(kinds)])
        for column in range(width):
            for c in range(pixel):
                a, b = at(row, column - 1, c), at(row - 1, column, c)
                corner = at(row - 1, column - 1, c)
                p = a + b - corner
                paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - corner), 2, corner))[2]
                guess = (0, a, b, (a + b) // 2, paeth)[kinds[row % len(kinds)]]
                made.append((int(pixels[row, column, c]) - guess) % 256)
    return bytes(made)


def png(size: tuple[int, int], depth: int, colour: int, lines: bytes, **more: bytes) -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", size[1], size[0], depth, colour, 0, 0, 0)
    extra = b"".join(chunk(name.encode(), content) for name, content in more.items())
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra
            + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))  # fmt: skip


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("depth", [8, 16])
def test_png_files_of_every_filter(colour: int, channels: int, depth: int) -> None:
    pixel = channels * depth // 8
    pixels = np.random.default_rng(0).integers(0, 256, (11, 5, pixel), np.uint8)
    raw = png((11, 5), depth, colour, filtered(pixels, [0, 1, 2, 3, 4]))
    made = read_image(memoryview(raw), "a", budget())
    high = pixels[:, :, :: depth // 8][:, :, : 3 if channels > 2 else 1]
    np.testing.assert_array_equal(made, np.broadcast_to(high, (11, 5, 3)))


def test_png_files_with_a_palette_and_others() -> None:
    colours = np.arange(12, dtype=np.uint8).reshape(4, 3)
    raw = png((1, 3), 8, 3, b"\0\2\0\3", PLTE=colours.tobytes())
    made = read_image(memoryview(raw), "a", budget())
    np.testing.assert_array_equal(made, colours[[[2, 0, 3]]])
    ppm = b"P6\n# made by hand\n2 1\n255\n" + bytes(range(6))
    assert read_image(memoryview(ppm), "a", budget()).tolist() == [[[0, 1, 2], [3, 4, 5]]]
    pgm = b"P5 2 1 255 \7\10"
    assert read_image(memoryview(pgm), "a", budget()).tolist() == [[[7] * 3, [8] * 3]]


GREY = png((2, 2), 8, 0, b"\0\1\2\4\3\4")


@pytest.mark.parametrize(
    "raw",
    [b"", b"\xff\xd8\xff\xe0JPEG", GREY[:-1], GREY[:40], GREY[:20] + b"\7" + GREY[21:],
     png((2, 2), 8, 0, b"\0\1\2"), png((2, 2), 8, 0, b"\0\1\2\4\3\4" + b"\0"),
     png((2, 2), 8, 0, b"\5\1\2\4\3\4"), png((2, 2), 4, 0, b"\0\1\0\1"), png((0, 2), 8, 0, b""),
     png((2, 2), 8, 7, b"\0\1\2\4\3\4"), png((1, 1), 8, 3, b"\0\1", PLTE=b"abc"),
     png((1, 1), 8, 3, b"\0\0"), b"P6 2 2 255 xx", b"P6 1 1 65535 xxxxxx", b"P6 0 0 255 "],
)  # fmt: skip
def test_files_that_are_no_images(raw: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(raw)
    assert refused(IMAGE, {"p": "a.png"}, root=tmp_path).code == "NAC95"


@given(st.data())
def test_any_byte_of_an_image_another(data: Any) -> None:  # noqa: ANN401
    raw = bytearray(GREY)
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    found = codes_of(lambda: read_image(memoryview(bytes(raw)), "a", budget(10**4, 10**6)))
    assert set(found) <= {"NAC88", "NAC89", "NAC95"}


def test_an_image_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    bomb = png((60000, 60000), 8, 2, bytes(10**6))
    tall = png((10**8, 1), 8, 0, b"")
    for raw in (bomb, tall):
        (tmp_path / "a.png").write_bytes(raw)
        found = refused(IMAGE, {"p": "a.png"}, root=tmp_path, max_bytes=2**26)
        assert found.code in ("NAC88", "NAC89")


@pytest.mark.parametrize("size", [(300, 500), (640, 480), (256, 256), (20, 31), (224, 224)])
def test_images_are_prepared_as_pytorch_resizes_them(size: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    pixels = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
    short = min(size)
    wanted = [256 * side // short for side in size]
    x = torch.tensor(pixels).permute(2, 0, 1)[None].double()
    x = torch.nn.functional.interpolate(x, wanted, mode="bilinear", antialias=True)
    top, left = (round((side - 224) / 2) for side in wanted)
    x = x[:, :, top : top + 224, left : left + 224] / 255
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)
    made = prepare_image(pixels, budget())
    assert made.dtype == np.float32
    assert made.shape == (1, 3, 224, 224)
    np.testing.assert_allclose(made, ((x - mean) / deviation).numpy(), atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (4, 5, 4), (4, 5, 1), (1, 4, 5, 3)])
def test_images_are_written(shape: tuple[int, ...], tmp_path: Path) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, shape, np.uint8)
    text = """
        res_load_array %x, "x"
        serialize %b, %x, png
        src_constant %p, "o.png"
        io_write %b, file, %p, write
    """
    Machine(assemble(text), root=tmp_path, may_write=True, arrays={"x": pixels}).run()
    raw = (tmp_path / "o.png").read_bytes()
    made = read_image(memoryview(raw), "o", budget())
    flat = pixels.reshape(4, 5, -1)[:, :, : 3 if pixels.size >= 60 else 1]
    np.testing.assert_array_equal(made, np.broadcast_to(flat, (4, 5, 3)))


def test_floats_from_minus_one_to_one_are_colours() -> None:
    planes = np.zeros((1, 3, 2, 5), np.float32)
    planes[0, 0], planes[0, 1], planes[0, 2] = -1, 1, 7
    made = read_image(memoryview(write_png(planes)), "o", budget())
    np.testing.assert_array_equal(made, np.broadcast_to(np.array([0, 255, 255]), (2, 5, 3)))


# JPEG, by Pillow


def picture() -> np.ndarray[Any, Any]:
    rows, columns = np.mgrid[0:64, 0:96]
    return np.stack([2 * columns, 4 * rows, 255 - columns - rows], -1).astype(np.uint8)


def jpeg(mode: str = "RGB") -> bytes:
    image = pytest.importorskip("PIL.Image")
    stream = BytesIO()
    image.fromarray(picture()).convert(mode).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def test_a_jpeg_is_what_was_written_but_for_its_losses() -> None:
    found = read_image(memoryview(jpeg()), "a.jpg", Budget(10**6, 2**24))
    assert found.shape == (64, 96, 3)
    assert np.abs(found.astype(int) - picture()).mean() < 3
    grey = read_image(memoryview(jpeg("L")), "a.jpg", Budget(10**6, 2**24))
    assert (grey[..., 0] == grey[..., 2]).all()


def test_a_jpeg_that_is_cut_or_too_large_is_refused() -> None:
    raw = jpeg()
    for size in (3, 20, len(raw) // 2):
        with pytest.raises(Fault) as caught:
            read_image(memoryview(raw[:size]), "a.jpg", Budget(10**6, 2**24))
        assert caught.value.rule.code == "NAC95"
    with pytest.raises(Fault) as caught:
        read_image(memoryview(raw), "a.jpg", Budget(10**6, 1000))
    assert caught.value.rule.code == "NAC89"


def test_any_byte_of_a_jpeg_another() -> None:
    raw = bytearray(jpeg())
    chance = random.Random(3)
    found = set()
    for _ in range(300):
        place = chance.randrange(3, len(raw))
        kept, raw[place] = raw[place], chance.randrange(256)
        view = memoryview(bytes(raw))
        found |= set(codes_of(lambda view=view: read_image(view, "a.jpg", Budget(10**6, 2**24))))  # type: ignore[misc]
        raw[place] = kept
    assert found <= {"NAC88", "NAC89", "NAC95"}
    assert "NAC95" in found


def test_a_jpeg_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = jpeg()
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(Fault) as caught:
        read_image(memoryview(raw), "a.jpg", Budget(10**6, 2**24))
    assert caught.value.rule.code == "NAC95"
    assert caught.value.help is not None
    assert "nacre[images]" in caught.value.help


# Arrays that a file carries


def test_arrays_that_a_file_carries() -> None:
    stream = BytesIO()
    np.save(stream, np.array([1.5, 2.5]))
    plan = assemble('res_load_array %a, "mine"\nreturn [%a]')
    (found,) = Machine(plan, resources={"mine.npy": stream.getvalue()}).run()
    assert isinstance(found, np.ndarray)
    assert found.tolist() == [1.5, 2.5]
    (given,) = Machine(
        plan, resources={"mine.npy": stream.getvalue()}, arrays={"mine": np.array([7])}
    ).run()
    assert isinstance(given, np.ndarray)
    assert given.tolist() == [7]
    with pytest.raises(InputError) as caught:
        Machine(plan, resources={"mina.npy": b"", "mine.txt": b""}).run()
    (finding,) = caught.value.diagnostics
    assert finding.code == "NAC96"
    assert finding.help == "did you mean `mina`?"

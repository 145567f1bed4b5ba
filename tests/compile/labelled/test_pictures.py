"""Folders of pictures: what they become, and what strangers put into them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre.base.diagnostics import InputError
from nacre.compile.labelled.pictures import read_pictures
from nacre.compile.labelled.preprocessing import read_preprocessing
from tests.compile.models import Array

Image: Any = pytest.importorskip("PIL.Image")


def pixels(seed: int, height: int = 6, width: int = 8) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(("cat", "dog")):
        (tmp_path / "data" / name).mkdir(parents=True)
        Image.fromarray(pixels(number)).save(tmp_path / "data" / name / "a.png")
    (tmp_path / "data" / "cat" / "notes.txt").write_text("no picture")
    return tmp_path / "data"


def declare(folder: Path, text: str) -> Any:  # noqa: ANN401
    file = folder.parent / "how.toml"
    file.write_text(text, encoding="utf-8")
    return read_preprocessing(file)


def test_pixels_become_inputs_as_declared(folder: Path) -> None:
    how = declare(folder, """
        input = "x"
        size = [6, 8]
        channels = "bgr"
        scale = 0.5
        mean = [1, 2, 3]
        deviation = [2, 4, 8]
    """)  # fmt: skip
    found = read_pictures(folder, how)
    assert found["label"].tolist() == [0, 1]
    assert found["x"].shape == (2, 3, 6, 8)
    for number in (0, 1):
        raw = pixels(number)
        for row, column, plane in ((0, 0, 0), (5, 7, 2), (3, 4, 1)):
            value = float(raw[row, column, 2 - plane])
            wanted = (value * 0.5 - (plane + 1)) / 2 ** (plane + 1)
            assert found["x"][number, plane, row, column] == pytest.approx(wanted)


def test_classes_in_an_order_of_ones_own_and_other_layouts(folder: Path) -> None:
    text = 'input="x"\nsize=[4, 4]\nlabels=["dog", "cat"]\nlayout="nhwc"\nchannels="gray"\n'
    for resize in ("stretch", "cover", "fit"):
        found = read_pictures(folder, declare(folder, text + f'resize="{resize}"'))
        assert found["x"].shape == (2, 4, 4, 1)
        assert found["label"].tolist() == [0, 1]
        assert 0 <= found["x"].min() <= found["x"].max() <= 1
    # A picture of 6 by 8 becomes 3 rows of 4, with one of nothing beside them.
    assert [bool(row.any()) for row in found["x"][0]].count(False) == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "input = 3\nsize=[2,2]", 'input="x"', 'input="x"\nsize=[0, 4]', "\0", "a = [[[[",
        'input="x"\nsize=[9999, 4]', 'input="x"\nsize=[4, 4]\nscale=nan',
        'input="x"\nsize=[4, 4]\nscale=[1]\nresize="x"', 'input="x"\nsize=[4, 4]\nsizes=1',
        'input="x"\nsize=[4, 4]\ndeviation=0', 'input="x"\nsize=[4, 4]\nmean=[1, 2]',
        'input="x"\nsize=[4, 4]\nlabels=["a", "a"]', 'input="x"\nsize=[4, 4]\nlabels=[1]',
        'input="x"\nsize=[4, 4]\nlabels=["../data"]', 'input="x"\nsize=[4, 4]\nlabels=["ox"]',
        'input="x"\nsize=[4, 4]\nfill=256', 'input="x"\nsize=[true, 4]', "a" * 70_000,
        "a = " + "[" * 5000, f'input="x"\nsize=[4, 4]\nscale=1{"0" * 400}', f"a = {'1' * 5000}",
        'input="x"\nsize=[4, 4]\ndeviation=1e-60', 'input="x"\nsize=[4, 4]\nlabels=[""]',
        'input="label"\nsize=[4, 4]',
    ],
)  # fmt: skip
def test_declarations_that_are_refused(folder: Path, text: str) -> None:
    with pytest.raises(InputError) as refused:
        read_pictures(folder, declare(folder, text))
    assert {d.code for d in refused.value.diagnostics} == {"CMP15"}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('input = "x"\nsize = [4, 4]\nscale = "2"\n', 3, "`scale` is '2', expected a number"),
        ('size = [4, 4]\n  "resize" = "covr"\ninput="x"', 2, "did you mean `cover`"),
        ('input = "x"\nsize = [4, 4\nfill = 3', 3, "it is no TOML"),
        ('input = "x"\nsize = [4, 4', 2, "it is no TOML"),
        ('input = "x"', 1, "add `size = [224, 224]`"),
        ('input = "x"\nsise = [4, 4]\nsize=[4, 4]', 2, "did you mean `size`"),
    ],
)
def test_a_mistake_has_its_line_and_a_help(folder: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as refused:
        declare(folder, text)
    found = refused.value.diagnostics[0]
    assert (found.location.line, Path(found.location.file).name) == (line, "how.toml")
    assert words in f"{found.message} {found.help}"


def test_pixels_of_16_bits_are_not_cut(folder: Path) -> None:
    wide = np.arange(48, dtype=np.uint16).reshape(6, 8) * 1000
    Image.fromarray(wide).save(folder / "cat" / "a.png")
    for channels in ("rgb", "gray"):
        with pytest.raises(InputError, match="wider than 8 bits"):
            read_pictures(folder, declare(folder, f'input="x"\nsize=[6, 8]\nchannels="{channels}"'))


def header_of_a_huge_picture() -> bytes:
    chunk = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    )


def test_files_that_are_no_pictures(folder: Path) -> None:
    how = declare(folder, 'input="x"\nsize=[4, 4]')
    whole = (folder / "cat" / "a.png").read_bytes()
    random = np.random.default_rng(0)
    damaged = [header_of_a_huge_picture(), b"", b"hello", whole[:40], whole[: len(whole) // 2]]
    damaged += [
        bytes(byte if random.random() > 0.02 else int(random.integers(256)) for byte in whole)
        for _ in range(60)
    ]
    codes = []
    for data in damaged:
        (folder / "dog" / "b.png").write_bytes(data)
        try:
            read_pictures(folder, how)
        except InputError as error:
            codes += [d.code for d in error.diagnostics]
    assert len(codes) >= 50
    assert set(codes) == {"CMP15"}


def test_links_lead_nowhere(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    Image.fromarray(pixels(3)).save(outside / "c.png")
    (folder / "elk").symlink_to(outside)
    (folder / "dog" / "link.png").symlink_to(outside / "c.png")
    found = read_pictures(folder, declare(folder, 'input="x"\nsize=[4, 4]'))
    assert found["label"].tolist() == [0, 1]
    with pytest.raises(InputError, match="no folder"):
        read_pictures(folder, declare(folder, 'input="x"\nsize=[4, 4]\nlabels=["elk"]'))

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from nacre.base.text_diff import unified_diff

MANY = "a\n" * 3 + "".join(f"{i}\n" for i in range(25_000)) + "z\n" * 5
CASES = {
    "a line": ("a\nb\nc\n", "a\nx\nc\n"),
    "no last line feed": ("a\nb", "a\nb\n"),
    "none before or after": ("a\nb", "a\nc"),
    "from nothing": ("", "a\n"),
    "to nothing": ("a\nb\n", ""),
    "form feeds and returns": ("a\x0cb\r\nc\n", "a\x0cb\nc\u2028d\n"),
    "far apart": ("\n".join("abcdefghijklmnop"), "\n".join("Abcdefghijklmnop") + "q"),
    "more than is matched": (MANY, MANY.replace("7", "8")),
    "more than is matched, in front": ("a\n" * 25_000, "b\n"),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
def test_patch_makes_one_text_of_the_other(before: str, after: str, tmp_path: Path) -> None:
    assert patched(before, unified_diff(before, after, "f.nem"), tmp_path) == after


@pytest.mark.parametrize("seed", range(8))
def test_patch_makes_one_random_text_of_another(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    before, after = (
        "\n".join(draw.choices("abc", k=draw.randrange(1, 40))) + draw.choice(["", "\n"])
        for _ in range(2)
    )
    assert patched(before, unified_diff(before, after, "f.nem"), tmp_path) == after


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n", "f.nem") == ""


def patched(text: str, diff: str, folder: Path) -> str:
    patch = shutil.which("patch")
    if patch is None:
        pytest.skip("there is no `patch` here")
    path = folder / "f.nem"
    path.write_bytes(text.encode())
    subprocess.run([patch, "-s", "--binary", path], input=diff.encode(), check=True)
    return path.read_bytes().decode() if path.exists() else ""

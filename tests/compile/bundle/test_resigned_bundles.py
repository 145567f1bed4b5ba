"""Bundles that somebody changed who knows how to sign them: a code, and nothing else."""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.manifest import Manifest
from nacre.compile.storage.folder import _sign
from nacre.core.builder import Builder
from nacre.core.module import Module
from tests.compile.models import inputs_of, values

TEXTS = ("model.core", "legal.core", "model.nem")
_TOKEN = re.compile(r"%\d+|\w+|[^\w\s]")


def small_model() -> Module:
    """Two layers and a state, so that every part of a bundle is there."""
    build = Builder()
    x = build.input("x", "f32", (8, 16))
    y = build.add("Relu", build.add("Linear", x, build.constant(values((16, 16), 1, 0.25)),
                                    build.constant(values((16,), 2))))  # fmt: skip
    z = build.add("Softmax", build.add("MatMul", y, build.constant(values((16, 8), 3))), axis=1)
    return build.module(z, y)


MODULE = small_model()


@pytest.fixture(scope="module", params=["f16", "i8"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("signed") / request.param
    data = [inputs_of(MODULE)] if request.param == "i8" else None
    nacre.compile(MODULE, "npm4k", request.param, calibration=data).save(folder)
    return folder


def sign(folder: Path) -> None:
    """Make every hash right again, as far as the manifest can still be read."""
    path = folder / "manifest.json"
    try:
        described = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    hashes = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in described.sha256
        if "/" not in name and "\0" not in name and (folder / name).is_file()
    }
    made = msgspec.structs.replace(described, sha256={**described.sha256, **hashes})
    path.write_bytes(msgspec.json.encode(_sign(made)))


def codes_of(folder: Path) -> list[str]:
    """What is said of a bundle; whatever loads can be run, validated and timed, or is refused."""
    try:
        found = nacre.Bundle.load(folder)
        types = found.source.input_types
        inputs = {name: np.zeros(t.shape, t.element.dtype) for name, t in types.items()}
        found.run(inputs)
        found.validate(inputs)
        found.time()
    except InputError as error:
        return [diagnostic.code for diagnostic in error.diagnostics] or ["no code"]
    return []


# Changes of a text


def _without_line(lines: list[str], chance: random.Random) -> None:
    del lines[chance.randrange(len(lines))]


def _line_twice(lines: list[str], chance: random.Random) -> None:
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))


def _lines_swapped(lines: list[str], chance: random.Random) -> None:
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]


def _token_of_another(lines: list[str], chance: random.Random) -> None:
    """A token becomes one that stands elsewhere: names of values, of buffers, numbers, marks."""
    index = chance.randrange(len(lines))
    places = list(_TOKEN.finditer(lines[index]))
    others = _TOKEN.findall(chance.choice(lines))
    if places and others:
        start, end = chance.choice(places).span()
        lines[index] = lines[index][:start] + chance.choice(others) + lines[index][end:]


def _other_number(lines: list[str], chance: random.Random) -> None:
    index = chance.randrange(len(lines))
    places = list(re.finditer(r"\d+", lines[index]))
    if places:
        start, end = chance.choice(places).span()
        number = chance.choice(["0", "-1", "1", "7", "64", "4096", "99999", str(1 << 63), "1e9"])
        lines[index] = lines[index][:start] + number + lines[index][end:]


def _without_token(lines: list[str], chance: random.Random) -> None:
    index = chance.randrange(len(lines))
    places = list(_TOKEN.finditer(lines[index]))
    if places:
        start, end = chance.choice(places).span()
        lines[index] = lines[index][:start] + lines[index][end:]


CHANGES: tuple[Callable[[list[str], random.Random], None], ...] = (
    _without_line, _line_twice, _lines_swapped, _token_of_another, _other_number, _without_token,
)  # fmt: skip


def damage(folder: Path, chance: random.Random) -> None:
    """Change a file of a bundle, and sign it again."""
    path = chance.choice(sorted(p for p in folder.iterdir() if p.is_file()))
    raw = path.read_bytes()
    if path.suffix == ".safetensors":
        changed = bytearray(raw)
        for _ in range(chance.randrange(1, 4)):
            where = chance.randrange(min(len(raw), chance.choice((9, 200, len(raw)))))
            changed[where] = chance.randrange(256)
        path.write_bytes(changed[: chance.choice((len(raw), len(raw), chance.randrange(len(raw))))])
    else:
        lines = raw.decode().split("\n")
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            chance.choice(CHANGES)(lines, chance)
        path.write_bytes("\n".join(lines).encode())
    sign(folder)


@pytest.mark.fuzz
@pytest.mark.filterwarnings("ignore:CMP13")  # damaged weights may be NaN, and a run then says so
@given(seed=st.integers(0, 1 << 48))
@example(seed=325)
@example(seed=800)
def test_random_damage_has_a_code(bundle: Path, seed: int) -> None:
    folder = bundle.parent / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bundle, folder)
    damage(folder, random.Random(seed))
    for code in codes_of(folder):
        assert re.fullmatch(r"[A-Z]{3}\d{2}", code), seed


# Near variants of what was found once


def _edited(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / name
        before = path.read_text()
        assert change(before) != before
        path.write_text(change(before))

    return apply


def _swapped(one: str, other: str) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        a, b = (next(folder.glob(name)) for name in (one, other))
        first, second = a.read_bytes(), b.read_bytes()
        a.write_bytes(second)
        b.write_bytes(first)

    return apply


def _last_operand(text: str) -> str:
    return re.sub(r"%\d+(?=[^%]*\Z)", "%999", text, count=1)


VARIANTS: dict[str, Callable[[Path], None]] = {
    **{
        f"{name}: {what}": _edited(name, change)
        for name in ("model.core", "legal.core")
        for what, change in {
            "an undefined value": lambda t: t.replace("(%0", "(%999", 1),
            "an undefined output": _last_operand,
            "no first line": lambda t: t.partition("\n")[2],
            "no last line": lambda t: t.rstrip().rpartition("\n")[0],
            "nothing": lambda t: "",
            "a value renamed where it is made": lambda t: t.replace("%0 =", "%77 =", 1),
            "a line twice": lambda t: t.split("\n", 1)[0] + "\n" + t,
            "the lines in another order": lambda t: "\n".join(reversed(t.split("\n"))),
        }.items()
    },
    "model.nem: a buffer renamed": _edited(
        "model.nem", lambda t: t.replace("buffer ", "buffer z", 1)
    ),
    "model.nem: nothing": _edited("model.nem", lambda t: ""),
    "model.nem: half": _edited(
        "model.nem", lambda t: "\n".join(t.split("\n")[: t.count("\n") // 2])
    ),
    "modules swapped": _swapped("model.core", "legal.core"),
    "program and module swapped": _swapped("model.core", "model.nem"),
    "weights and constants swapped": _swapped("weights.*", "model.core.*"),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_bundle_that_was_signed_again(bundle: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "b"
    shutil.copytree(bundle, folder)
    VARIANTS[name](folder)
    sign(folder)
    assert codes_of(folder) == ["CMP07"]


def test_a_bundle_that_was_signed_again_and_is_right(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    shutil.copytree(bundle, folder)
    described = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(described))
    sign(folder)
    assert codes_of(folder) == []

"""Arrays in damaged archives, compressed or not, at every verb that reads arrays."""

from __future__ import annotations

import contextlib
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre import compile as compiled
from nacre import core, nac
from nacre.base.diagnostics import InputError
from nacre.cli.arrays import WrongUsage, parse_input
from nacre.cli.calibration import read_calibration
from nacre.core.builder import Builder
from nacre.nem.api.ddr import load_npy
from tests.cli.runner import Outcome, invoke

Capsys = pytest.CaptureFixture[str]
PROGRAM = "buffer X : DDR (size=8)\nbuffer Y : DDR (size=8)\n" \
    "t = transfer.sync(dst=region(Y, 0, 8), src=region(X, 0, 8))\n"  # fmt: skip


def archive(*, is_compressed: bool = True) -> bytes:
    """Eight samples of an input, as NumPy writes them."""
    stream = io.BytesIO()
    save = np.savez_compressed if is_compressed else np.savez
    save(stream, x=np.random.default_rng(3).normal(size=(8, 2, 16)).astype(np.float32))
    return stream.getvalue()


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut off, put in or doubled."""
    made = bytearray(raw)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(made))
        match chance.randrange(5):
            case 0 | 1:
                made[at] = chance.randrange(256)
            case 2:
                del made[at : at + chance.randrange(1, 40)]
            case 3:
                made[at:at] = chance.randbytes(chance.randrange(1, 9))
            case _:
                made += made[at : at + 200]
        if not made:
            break
    return bytes(made[: chance.choice((len(made), len(made), chance.randrange(len(made) + 1)))])


@pytest.mark.fuzz
@given(seed=st.integers(0, 1 << 48), is_compressed=st.booleans())
def test_random_damage_is_said(
    tmp_path_factory: pytest.TempPathFactory, seed: int, is_compressed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(mutated(archive(is_compressed=is_compressed), random.Random(seed)))
    with contextlib.suppress(WrongUsage, InputError):
        assert all(isinstance(array, np.ndarray) for array in read_calibration(path).values())
    with pytest.raises(InputError, match=r"damaged\.npz") as caught:
        load_npy(path)  # which is for one array, damaged or not
    assert [d.code for d in caught.value.diagnostics] == ["RUN05"]


def _entry(change: Callable[[zipfile.ZipInfo], bytes]) -> bytes:
    """The array's own bytes, compressed, in an archive that says something else of them."""
    with zipfile.ZipFile(io.BytesIO(archive())) as old:
        raw = old.read("x.npy")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        info = zipfile.ZipInfo("x.npy")
        info.compress_type = zipfile.ZIP_DEFLATED
        new.writestr(info, raw)
    made = bytearray(stream.getvalue())
    start = 30 + len("x.npy")  # of the compressed bytes, behind the local header
    return bytes(made[:start]) + change(info) + bytes(made[start + 1 :])


DAMAGES: dict[str, Callable[[], bytes]] = {
    "a wrong stream": lambda: _entry(lambda info: b"\xff"),
    "a stream that ends at once": lambda: _entry(lambda info: b"\x03"),
    "cut in the middle": lambda: archive()[:300],
    "no bytes": lambda: b"",
    "a wrong sum": lambda: archive().replace(archive()[14:18], b"\0\0\0\0"),
    "another method": lambda: archive().replace(b"\x08\x00", b"\x0c\x00"),
    "a stranger's bytes": lambda: b"PK\x05\x06" + bytes(18),
}
VERBS: dict[str, list[str]] = {
    "compile": ["compile", "m.core", "--device", "npm4k", "--precision", "i8", "-o", "new",
                "--calibrate", "d.npz"],
    "estimate": ["estimate", "m.core", "--device", "npm4k", "--precision", "i8",
                 "--calibrate", "d.npz"],
    "core eval": ["core", "eval", "m.core", "--input", "x=d.npz"],
    "core eval of .npy": ["core", "eval", "m.core", "--input", "x=d.npy"],
    "core eval --constant": ["core", "eval", "m.onnx", "--constant", "x=d.npy"],
    "nac run": ["nac", "run", "m.nac", "--input", "x=d.npz"],
    "nac compare": ["nac", "compare", "m.nac", "m.core", "--input", "x=d.npy"],
    "run": ["run", "p.nem", "--input", "X=d.npz"],
    "run of .npy": ["run", "p.nem", "--input", "X=d.npy"],
    "run a bundle": ["run", "b", "--input", "x=d.npy", "--output", "output0=y.npy"],
    "validate": ["validate", "b", "--input", "x=d.npz"],
    "validate of .npy": ["validate", "b", "--input", "x=d.npy"],
    "validate --expect": ["validate", "b", "--expect", "output0=d.npy"],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("verbs")
    build = Builder()
    x = build.input("x", "f32", (2, 16))
    weights = build.constant(np.eye(16, dtype=np.float32))
    module = build.module(build.add("MatMul", x, weights))
    core.save(module, made / "m.core")
    nac.save(nac.build(module), made / "m.nac")
    core.to_onnx(module, made / "m.onnx")
    compiled(module, "npm4k").save(made / "b")
    (made / "p.nem").write_text(PROGRAM)
    return made


def _survived(
    verb: str, raw: bytes, folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> Outcome:
    monkeypatch.chdir(folder)
    for name in ("d.npz", "d.npy"):
        (folder / name).write_bytes(raw)
    outcome = invoke(capsys, *VERBS[verb])
    assert outcome.status in (0, 1, 2), outcome.text
    assert "internal error" not in outcome.err
    return outcome


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_damaged_archive(
    verb: str, damage: str, folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = _survived(verb, DAMAGES[damage](), folder, capsys, monkeypatch)
    status = outcome.status
    if "--calibrate" in VERBS[verb]:
        assert status == 1
        assert "error[CMP09]" in outcome.err
        assert "--> d.npz" in outcome.err
    assert status in (1, 2) or (verb == "run" and damage == "no bytes")
    assert "<host>" not in outcome.text
    if "error[RUN05]" in outcome.text and damage != "no bytes":
        given = next(word for word in VERBS[verb] if "=d." in word)
        assert f"--> {given.partition('=')[2]}" in outcome.text
    assert not (folder / "new").exists()
    assert not (folder / "y.npy").exists()


@pytest.mark.full
@pytest.mark.fuzz
@pytest.mark.parametrize("verb", VERBS)
def test_many_damaged_archives(
    verb: str, folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(28)
    for turn in range(150):
        raw = mutated(archive(is_compressed=turn % 2 == 0), chance)
        _survived(verb, raw, folder, capsys, monkeypatch)


def test_a_name_with_an_equals_sign_ends_where_a_file_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.npy").touch()
    (tmp_path / "b=c.npy").touch()
    for text, target, path in (
        ("a=b=x.npy", "a=b", "x.npy"),
        ("a=b=c.npy", "a", "b=c.npy"),
        ("a=none=no.npy", "a", "none=no.npy"),
        ("a=x.npy", "a", "x.npy"),
    ):
        found = parse_input(text)
        assert (found.target, str(found.path)) == (target, path)

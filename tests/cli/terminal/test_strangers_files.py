"""Files beside models that a stranger may have made: no verb passes their control characters on."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import compile as compiled
from nacre import core, nac
from nacre.core.builder import Builder
from tests.cli.terminal.test_streams import EVIL, run
from tests.nac.mep.carrying import successor, tokenizer_json

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    build = Builder()
    x = build.input("x", "f32", (2, 16))
    module = build.module(build.add("Linear", x, build.constant(np.eye(16, dtype=np.float32))))
    core.save(module, "m.core")
    np.save("x.npy", np.ones((2, 16), np.float32))
    return tmp_path


# Devices

DEVICES = {
    "a name": f"device {EVIL} extends npm_lite {{\n}}\n",
    "a parent": f"device d extends {EVIL} {{\n}}\n",
    "a quoted parent": f'device d extends "{EVIL}" {{\n}}\n',
    "a comment": f'include "npm_lite.nem"\ndevice d extends npm_lite {{  # {EVIL[:20]}\n}}\n',
    "an opcode": f'include "npm_lite.nem"\ndevice d extends npm_lite {{\n'
                 f"    opcode.extended {{ {EVIL} }}\n}}\n",
    "a figure": f'include "npm_lite.nem"\ndevice d extends npm_lite {{\n'
                f"    unit_characteristics {{\n        NMU {{ {EVIL} = 4 }}\n    }}\n}}\n",
    "an include": f'include "{EVIL}"\ndevice d extends npm_lite {{\n}}\n',
}  # fmt: skip
OF_DEVICES: tuple[tuple[str, ...], ...] = (
    ("devices", "d.nem"), ("check", "d.nem"), ("fmt", "--check", "d.nem"),
    ("check", "p.nem", "--device", "d.nem"), ("run", "p.nem", "--device", "d.nem"),
    ("debug", "p.nem", "--device", "d.nem", "--batch"),
    ("compile", "m.core", "--device", "d.nem", "-o", "new"),
    ("estimate", "m.core", "--device", "d.nem"),
    ("estimate", "m.core", "--device", "d.nem", "--format", "json"),
)  # fmt: skip


@pytest.mark.parametrize("verb", OF_DEVICES, ids=" ".join)
def test_files_of_devices(here: Path, verb: tuple[str, ...], capsys: Capsys) -> None:
    (here / "p.nem").write_text("buffer X : DDR (size=8)\n")
    for text in DEVICES.values():
        (here / "d.nem").write_text(text)
        run(capsys, *verb)


# Bundles


def _leaves(value: Any, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:  # noqa: ANN401
    """Where texts stand in a document, names of entries among them."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key, "its name")
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _leaves(inner, (*path, at))
    elif isinstance(value, str):
        yield path


def _with_evil(document: Any, path: tuple[object, ...]) -> Any:  # noqa: ANN401
    made = json.loads(json.dumps(document))
    inner = made
    steps = path[:-2] if path[-1] == "its name" else path[:-1]
    for step in steps:
        inner = inner[step]
    if path[-1] == "its name":
        inner[EVIL] = inner.pop(path[-2])
    else:
        inner[path[-1]] = EVIL
    return made


OF_BUNDLES: tuple[tuple[str, ...], ...] = (
    ("validate", "b"), ("run", "b", "--input", "x=x.npy"), ("estimate", "b"),
    ("debug", "b", "--batch", "--command", "layers", "--command", "print x"),
)  # fmt: skip


def _bundle() -> Any:  # noqa: ANN401 - a document of JSON
    compiled(core.load("m.core"), "npm_lite").save("good")
    return json.loads(Path("good/manifest.json").read_text())


def _try_manifests(capsys: Capsys, paths: Callable[[Any], list[tuple[object, ...]]]) -> int:
    document = _bundle()
    tried = paths(document)
    for path in tried:
        shutil.rmtree("b", ignore_errors=True)
        shutil.copytree("good", "b")
        Path("b/manifest.json").write_text(json.dumps(_with_evil(document, path)))
        for verb in OF_BUNDLES:
            run(capsys, *verb)
    return len(tried)


def test_a_few_texts_of_a_manifest(here: Path, capsys: Capsys) -> None:
    """One of each kind: a name in the document, a name of a file, of a device, of a layer."""

    def one_of_each(document: Any) -> list[tuple[object, ...]]:  # noqa: ANN401
        found = {str([p for p in path if isinstance(p, str)]): path for path in _leaves(document)}
        return list(found.values())[::7]

    assert _try_manifests(capsys, one_of_each) > 5


@pytest.mark.full
def test_every_text_of_a_manifest(here: Path, capsys: Capsys) -> None:
    assert _try_manifests(capsys, lambda document: list(_leaves(document))) > 50


# NAC: resources, tokenizers, plans

OF_NAC: tuple[tuple[str, ...], ...] = (
    ("nac", "info", "m.nac"), ("nac", "info", "m.nac", "--format", "json"), ("nac", "dis", "m.nac"),
    ("nac", "verify", "m.nac"), ("nac", "extract", "m.nac", "-o", "parts"),
    ("nac", "run", "m.nac", "--answer", "prompt=a b", "--answer", "p=1"),
    ("nac", "run", "m.nac"), ("nac", "diff", "m.nac", "m.nac"), ("nac", "genome", "m.nac"),
    ("nac", "convert", "m.nac", "-o", "again.core"), ("core", "verify", "m.nac"),
    ("core", "stats", "m.nac"), ("estimate", "m.nac", "--device", "npm_lite"),
)  # fmt: skip


def _resource(here: Path) -> None:
    build = Builder()
    x = build.input("x", "f32", (2, 16))
    module = build.module(build.add("Relu", x))
    names = (f"r{EVIL}", f"sub/{EVIL}", "tokenizer.json")
    made = nac.build(module, resources={name: EVIL.encode() for name in names})
    nac.save(made, here / "m.nac")


def _tokenizer(here: Path) -> None:
    text = tokenizer_json().replace('"a"', json.dumps(f"a{EVIL}"))
    (here / "tokenizer.json").write_text(text)


PLANS = {
    "a prompt": f"src_user_prompt %p, str, {json.dumps(EVIL)}\nio_write %p, stdout, %p, plain\n",
    "an instruction": f"{EVIL} %p\n",
    "a label": f"jmp {EVIL}\n",
}


@pytest.mark.parametrize("verb", OF_NAC, ids=" ".join)
def test_resources_of_nac(here: Path, verb: tuple[str, ...], capsys: Capsys) -> None:
    _resource(here)
    assert "usage" not in run(capsys, *verb).lower()


def test_tokenizers(here: Path, capsys: Capsys) -> None:
    _tokenizer(here)
    core.save(successor(), "s.core")
    run(capsys, "nac", "build", "s.core", "-o", "m.nac", "--plan", "greedy",
        "--tokenizer", "tokenizer.json")  # fmt: skip
    for verb in OF_NAC:
        run(capsys, *verb)


@pytest.mark.parametrize("kind", PLANS)
def test_plans_of_nac(here: Path, kind: str, capsys: Capsys) -> None:
    (here / "plan.txt").write_text(PLANS[kind])
    run(capsys, "nac", "build", "m.core", "-o", "m.nac", "--plan", "plan.txt")
    if kind == "a prompt":
        assert (here / "m.nac").exists()
        for verb in (*OF_NAC, ("nac", "run", "m.nac", "--answer", f"{EVIL}=1")):
            run(capsys, *verb)


# Archives


def _archive(path: Path, name: str, raw: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, raw)


def test_names_in_archives_of_arrays(here: Path, capsys: Capsys) -> None:
    raw = Path("x.npy").read_bytes()
    how = ("--device", "npm_lite", "--precision", "i8", "--calibrate", "d.npz")
    for name in (EVIL, f"{EVIL}.npy", f"x.npy{EVIL}", f"x{EVIL}.npy"):
        for content in (raw, b"no array", raw[:-3]):
            _archive(here / "d.npz", name, content)
            run(capsys, "compile", "m.core", *how, "-o", "new")
            run(capsys, "estimate", "m.core", *how)
            run(capsys, "core", "eval", "m.core", "--input", "x=d.npz")


@pytest.mark.heavy("loads PyTorch, where it is there")
def test_names_in_archives_of_programs(here: Path, capsys: Capsys) -> None:
    """`.pt2` files that are none: what their entries are called is said harmlessly."""
    for name in (EVIL, f"{EVIL}/models/model.json", f"archive/models/{EVIL}.json"):
        for content in (EVIL.encode(), json.dumps({EVIL: EVIL}).encode()):
            _archive(here / "p.pt2", name, content)
            run(capsys, "core", "verify", "p.pt2")
            run(capsys, "compile", "p.pt2", "--device", "npm_lite", "-o", "new")
            run(capsys, "nac", "build", "p.pt2", "-o", "new.nac")

"""Folders of bundles: what is stored once, whose folder is taken, and what old ones look like."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace
from safetensors.numpy import save as save_tensors

import nacre
from nacre import core
from nacre.base.diagnostics import InputError
from nacre.base.files import hashed_name
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.options import Precision
from nacre.compile.storage.folder import _sign
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.core.storage import Reference, referring_text, stored_constants
from nacre.core.tensor_file import tensor_file_parts
from tests.compile.models import convolution_model, inputs_of, linear_model, values

pytestmark = pytest.mark.sampled(2)  # together they take long


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def constant_bytes(module: Module) -> int:
    found = (op.attributes.get("data") for op in module.operations if op.opcode == "ConstTensor")
    return sum(data.array.nbytes for data in found if data is not None)


def two_layers() -> Module:
    """Weights that two layers share, one of them transposed in the file."""
    build = Builder()
    x = build.input("x", "f32", (8, 256))
    shared = build.constant(values((256, 256), 1, 0.05))
    again = build.constant(values((256, 256), 1, 0.05))
    y = build.add("Linear", x, shared, build.constant(values((256,), 2)))
    y = build.add("Linear", build.add("Relu", y), again, build.constant(values((256,), 3)))
    return build.module(y)


def calibration(module: Module) -> dict[str, object]:
    return {name: array[None] for name, array in inputs_of(module).items()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", [convolution_model, linear_model, two_layers])
@pytest.mark.parametrize("precision", ["f16", "i8"])
def test_no_array_is_stored_twice(
    make: Callable[[], Module], precision: Precision, tmp_path: Path
) -> None:
    module = make()
    given = calibration(module) if precision == "i8" else None
    bundle = nacre.compile(module, "npm4k", precision, calibration=given)
    bundle.save(tmp_path / "b")
    once = constant_bytes(module) + (constant_bytes(bundle.legal) if precision == "i8" else 0)
    assert size_of(tmp_path / "b") < once + 1500
    loaded = Bundle.load(tmp_path / "b")
    assert (loaded.weights, loaded.manifest) == (bundle.weights, bundle.manifest)
    assert (loaded.source, loaded.legal) == (module, bundle.legal)
    assert loaded.validate(inputs_of(module)).ok == bundle.validate(inputs_of(module)).ok
    loaded.save(tmp_path / "again")
    names = [{path.name for path in (tmp_path / name).iterdir()} for name in ("b", "again")]
    assert names[0] == names[1]


def test_a_bundle_without_its_model_says_so(tmp_path: Path) -> None:
    module = two_layers()
    bundle = nacre.compile(module, "npm4k")
    bundle.save(tmp_path / "b")
    whole = size_of(tmp_path / "b")
    bundle.save(tmp_path / "b", reference=False)
    assert size_of(tmp_path / "b") < 0.51 * whole
    assert not (tmp_path / "b" / "model.core").exists()
    loaded = Bundle.load(tmp_path / "b")
    inputs = inputs_of(module)
    np.testing.assert_array_equal(loaded.run(inputs)["output0"], bundle.run(inputs)["output0"])
    found = loaded.validate(inputs)
    assert found.ok
    assert "without the model as it came" in str(found)
    assert found.outputs == ()
    assert loaded.validate(inputs, core.evaluate(module, inputs)).ok
    assert not loaded.validate(inputs, [np.ones((8, 256), np.float32)]).ok
    loaded.save(tmp_path / "again")  # what is not there cannot come back
    assert not Bundle.load(tmp_path / "again").has_reference


def counter() -> Module:
    build = Builder()
    x, total = build.input("x", "f32", (2, 128)), build.input("total", "f32", (2, 128))
    start = build.constant(values((2, 128), 4))
    y = build.add("BinOp", x, total, op="Add")
    build.state("total", y, start)
    return build.module(y)


def test_state_survives_without_the_model(tmp_path: Path) -> None:
    bundle = nacre.compile(counter(), "npm4k")
    bundle.save(tmp_path / "b", reference=False)
    one, other = bundle.session(), Bundle.load(tmp_path / "b").session()
    given = {"x": values((2, 128), 5)}
    for _ in range(3):
        found, wanted = (next(iter(session.run(given).values())) for session in (one, other))
        np.testing.assert_array_equal(found, wanted)


def saved_as_format_4(bundle: Bundle, folder: Path) -> None:
    """A bundle as nacre wrote it before arrays were shared: fixed names, weights in one piece."""
    folder.mkdir()
    contents = {
        "model.nem": bundle.program.encode(),
        "weights.safetensors": save_tensors(
            {"weights": np.frombuffer(bundle.weights, np.uint8)} if bundle.weights else {}
        ),
    }
    for name, module in (("model.core", bundle.source), ("legal.core", bundle.legal)):
        found = stored_constants(module)
        file = f"{name}.safetensors"
        references = {key: Reference(file, key) for key in found.tensors}
        contents[name] = referring_text(module, found, references).encode()
        contents[file] = b"".join(tensor_file_parts(found.tensors))
    hashes = {name: hashlib.sha256(raw).hexdigest() for name, raw in contents.items()}
    made = _sign(replace(bundle.manifest, format=4, sha256=hashes))
    contents["manifest.json"] = msgspec.json.encode(made)
    for name, raw in contents.items():
        (folder / name).write_bytes(raw)


def test_old_bundles_are_read_and_replaced(tmp_path: Path) -> None:
    bundle = nacre.compile(two_layers(), "npm4k")
    folder = tmp_path / "b"
    saved_as_format_4(bundle, folder)
    loaded = Bundle.load(folder)
    assert (loaded.weights, loaded.manifest, loaded.legal) == (
        bundle.weights, bundle.manifest, bundle.legal,
    )  # fmt: skip
    assert loaded.validate(inputs_of(bundle.source)).ok
    (folder / "notes.txt").write_text("mine")
    other = nacre.compile(linear_model(), "npm4k")
    other.save(folder)
    assert Bundle.load(folder).program == other.program
    left = {path.name for path in folder.iterdir()}
    fixed = {"manifest.json", "model.nem", "model.core", "legal.core", "notes.txt"}
    assert fixed <= left
    assert not left & {"weights.safetensors", "model.core.safetensors", "legal.core.safetensors"}
    loaded.save(tmp_path / "new")  # its weights are known as a whole only
    assert Bundle.load(tmp_path / "new").weights == bundle.weights


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    bundle = nacre.compile(linear_model(), "npm4k")
    for name in ("model.core", "model.nem", "manifest.json", "notes.txt"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(InputError) as caught:
            bundle.save(folder)
        (found,) = caught.value.diagnostics
        assert found.code == "CMP11"
        assert f"`{name}`" in found.message
        assert [p.name for p in folder.iterdir()] == [name]
        assert (folder / name).read_text() == "{}"
    bundle.save(tmp_path / "notes.txt", force=True)
    assert Bundle.load(tmp_path / "notes.txt").program == bundle.program
    bundle.save(tmp_path / "notes.txt")  # it is a bundle's now
    assert (tmp_path / "notes.txt" / "notes.txt").read_text() == "{}"


def test_what_an_interrupted_writer_left_is_in_nobodys_way(tmp_path: Path) -> None:
    bundle = nacre.compile(linear_model(), "npm4k")
    (tmp_path / ".nacre-0123456789abcdef.tmp").write_text("half")
    (tmp_path / hashed_name("weights.safetensors", "a" * 64)).write_text("half")
    bundle.save(tmp_path)
    assert Bundle.load(tmp_path).program == bundle.program


def test_texts_that_have_not_moved_yet_are_found(tmp_path: Path) -> None:
    """As after a kill between the manifest and the last rename."""
    old, new = (nacre.compile(linear_model(*dims), "npm4k") for dims in ((), (64, 32, 48)))
    for folder, bundle in ((tmp_path / "old", old), (tmp_path / "new", new)):
        bundle.save(folder)
    for path in (tmp_path / "new").iterdir():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        is_text = path.name in ("model.nem", "model.core", "legal.core")
        name = hashed_name(path.name, digest) if is_text else path.name
        (tmp_path / "old" / name).write_bytes(path.read_bytes())
    assert Bundle.load(tmp_path / "old").program == new.program
    new.save(tmp_path / "old")
    left, wanted = ({p.name for p in (tmp_path / n).iterdir()} for n in ("old", "new"))
    assert wanted <= left
    assert {name for name in left - wanted if not name.endswith(".safetensors")} == set()

"""Bundles whose program is bytecode."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from tests.cli.runner import invoke
from tests.compile.models import inputs_of, linear_model


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return nacre.compile(linear_model(8, 16, 8), "npm4k")


def test_a_bundle_keeps_its_program_as_bytecode(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "b", bytecode=True)
    assert (tmp_path / "b/model.nemb").is_file()
    assert not (tmp_path / "b/model.nem").exists()
    found = Bundle.load(tmp_path / "b")
    assert found.program == bundle.program
    feeds = inputs_of(bundle.source)
    for name, array in bundle.run(feeds).items():
        assert found.run(feeds)[name].tobytes() == array.tobytes()


def test_either_form_replaces_the_other(bundle: Bundle, tmp_path: Path) -> None:
    for bytecode in (False, True, False):
        bundle.save(tmp_path / "b", bytecode=bytecode)
        names = {path.name for path in (tmp_path / "b").iterdir()} & {"model.nem", "model.nemb"}
        assert names == {"model.nemb" if bytecode else "model.nem"}


def test_verbs_take_such_a_bundle(
    bundle: Bundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle.save(tmp_path / "b", bytecode=True)
    assert invoke(capsys, "check", "--strict", tmp_path / "b").status == 0
    assert invoke(capsys, "validate", tmp_path / "b").status == 0
    np.save(tmp_path / "x.npy", inputs_of(bundle.source)["x"])
    given = ("--input", f"x={tmp_path}/x.npy", "--mode", "timed")
    assert invoke(capsys, "run", tmp_path / "b", *given).status == 0


def test_a_damaged_program_is_refused(bundle: Bundle, tmp_path: Path) -> None:
    bundle.save(tmp_path / "b", bytecode=True)
    path = tmp_path / "b/model.nemb"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="is not the file that the manifest"):
        Bundle.load(tmp_path / "b")

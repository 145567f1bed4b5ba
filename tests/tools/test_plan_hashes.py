"""The tool that tells what a change did to plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.plan_hashes import (
    NUMBERS,
    UNAVAILABLE,
    Entry,
    differences,
    entries,
    folder_hashes,
    is_broken,
    main,
    numbers_apart,
    plan_hashes,
    verdict,
)

PLAN = "let W = region(B, 32, 64) quant=per_tensor(scale=0.25, zero_point=-3)\n"
LEGAL = "%1 = ConstTensor () {data=[1, -2], dtype=i32} : tensor<i32[2]>\n%2 = Relu (%1)\n"


def saved(folder: Path, plan: str = PLAN, legal: str = LEGAL, weights: bytes = b"w") -> Path:
    folder.mkdir()
    (folder / "model.nem").write_text(plan)
    (folder / "legal.core").write_text(legal)
    (folder / "weights.0011223344556677.safetensors").write_bytes(weights)
    manifest = {"nacre": str(folder), "sha256": {"x": str(folder)}, "layers": [1, 0.5]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ({}, ()),
        ({"plan": PLAN.replace("0.25", "0.2500001")}, (NUMBERS,)),
        ({"plan": PLAN.replace(" quant", "\n    quant")}, ()),
        ({"plan": PLAN.replace("64", "65")}, ("model.nem",)),
        ({"plan": PLAN.replace("-3", "-4")}, ("model.nem",)),
        ({"legal": LEGAL.replace("-2", "-3")}, (NUMBERS,)),
        ({"legal": LEGAL.replace("Relu", "Abs")}, ("legal.core",)),
        ({"weights": b"v"}, (NUMBERS,)),
    ],
)
def test_a_part_that_changed_is_named(
    tmp_path: Path, changed: dict[str, str], parts: tuple[str, ...]
) -> None:
    before = folder_hashes(saved(tmp_path / "before"))
    after = folder_hashes(saved(tmp_path / "after", **changed))  # type: ignore[arg-type]
    assert differences(before, after) == parts
    assert is_broken(before, after, exact=True) == bool(parts)
    assert is_broken(before, after, exact=False) == bool(set(parts) - {NUMBERS})


def test_floats_are_taken_out_and_integers_stay() -> None:
    text = "a1.5 npm4k.nem [-0.5, 3, 1e-05, 2.5e+3] x_2.w tensor<f32[1, 2]>"
    bare, numbers = numbers_apart(text)
    assert numbers == ["-0.5", "1e-05", "2.5e+3"]
    assert bare == "a1.5 npm4k.nem [#, 3, #, #] x_2.w tensor<f32[1, 2]>"


def test_files_of_constants_are_the_same_whatever_hash_they_carry() -> None:
    one, other = (f'file="legal.core.{h}.safetensors"' for h in ("00ff00ff", "11aa11aa"))
    assert numbers_apart(one) == numbers_apart(other)


def test_what_cannot_be_had_is_left_out_and_says_why() -> None:
    missing = {UNAVAILABLE: "No module named 'torch'"}
    assert verdict({"model.nem": "1"}, missing) == "left out, No module named 'torch'"
    assert not is_broken({"model.nem": "1"}, missing, exact=True)
    assert verdict(missing, {"model.nem": "1"}).startswith("not compared")


def test_a_failure_counts_whatever_was_before() -> None:
    assert is_broken(None, {"failure": "ZeroDivisionError"}, exact=False)


def test_every_entry_stands_once_and_small_ones_need_nothing() -> None:
    found = entries()
    assert len(set(found)) == len(found)
    assert {"digits", "attention", "nudenet", "minilm"} <= {entry.model for entry in found}


def test_a_plan_can_be_kept_and_has_the_same_hashes_there(tmp_path: Path) -> None:
    found = plan_hashes(Entry("attention", "npm4k", "f16"), tmp_path)
    assert found.keys() == {"model.nem", "manifest.json", "legal.core", NUMBERS}
    assert folder_hashes(tmp_path / "attention-npm4k-f16") == found


def test_a_pattern_without_entries_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nothing"])
    assert "nothing matches 'nothing'" in capsys.readouterr().err

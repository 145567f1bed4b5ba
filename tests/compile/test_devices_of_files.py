"""Devices of files that are no built-in ones: a program has all that they are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

import nacre
from nacre.base.diagnostics import InputError
from nacre.compile.bundle.bundle import Bundle
from nacre.compile.target import target_of
from nacre.core import Builder
from nacre.nem.api import check

TOPOLOGY = """    topology {
        num_engines = 1
        l2_size_bytes = 1048576
        device_units { sDMA = 1  WDM = 0 }
        per_engine { NMU = 1  CSTL = 1  DMA = 1  VPU = 1  SEQ = 1  l1_size_bytes = 524288 }
    }
"""
WITH_SHIPPED_FAMILY = f"""include "nem_baseline_1.0.nem"
include "store_quant.nem"
device mine extends nem_baseline_1_0 {{
{TOPOLOGY}    opcode.extended {{ store.quant<f16, i8>.default }}
}}
"""
WITH_OWN_FAMILY = f"""include "nem_baseline_1.0.nem"
type_family halve<T: {{f16}}> {{
    X: T
    Y: T

    variants:
        default: {{}}
            conformance: {{ MAY <f16> }}
}}
device mine extends nem_baseline_1_0 {{
{TOPOLOGY}    opcode.extended {{ halve<f16>.default }}
}}
"""


def compiled(tmp_path: Path, text: str) -> tuple[Bundle, str]:
    path = tmp_path / "mine.nem"
    path.write_text(text)
    assert not [d for d in check(path) if d.severity == "error"]
    builder = Builder("nacre-1")
    x = builder.input("x", "f32", (1, 8))
    bundle = nacre.compile(builder.module(builder.add("Relu", x)), path, "f16")
    return bundle, "\n".join(target_of(path).head)


def test_a_program_includes_the_shipped_families_of_its_device(tmp_path: Path) -> None:
    # Found: of a device of a file its text came along, and what the text names did not.
    bundle, head = compiled(tmp_path, WITH_SHIPPED_FAMILY)
    assert bundle.time().cycles > 0
    assert 'include "store_quant.nem"' in head


def test_a_family_of_the_device_s_own_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="operations of `halve`, a type family of its file") as e:
        compiled(tmp_path, WITH_OWN_FAMILY)
    assert [d.code for d in e.value.diagnostics] == ["CMP04"]

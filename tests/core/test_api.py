"""The names that users rely on."""

from __future__ import annotations

import copy
import importlib
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import nacre
from nacre.core.module import Labels

TEXT = """%0 = Input () {name="x"} : tensor<f32[2]>
%1 = Relu (%0) : tensor<f32[2]>
outputs: %1
"""


def test_a_module_goes_from_text_to_numbers() -> None:
    module = nacre.core.parse(TEXT)
    assert nacre.core.verify(module) == []
    assert nacre.core.print_module(module) == TEXT
    (found,) = nacre.core.evaluate(module, {"x": np.array([-1, 2], np.float32)})
    assert found.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("name", dir(nacre.core))
def test_a_public_name_is_what_it_says_even_beside_a_file_of_that_name(name: str) -> None:
    for file in ("evaluation.evaluate", "verify", "storage", "module", "text.reader"):
        importlib.import_module(f"nacre.core.{file}")
    found = getattr(nacre.core, name)
    assert callable(found)
    assert found.__name__ == name
    assert found.__module__.startswith("nacre.core.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        nacre.core.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_the_room_is_loaded_on_first_use_and_costs_nothing_before() -> None:
    program = (
        "import sys, nacre; assert 'nacre.core' not in sys.modules; "
        "nacre.core; assert 'numpy' not in sys.modules; "
        "nacre.core.parse; assert 'nacre.core.evaluation.evaluate' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_wrong_has_code_severity_message_and_line() -> None:
    with pytest.raises(nacre.InputError) as caught:
        nacre.core.parse("# first\nnonsense\noutputs: %0\n")
    (found,) = caught.value.diagnostics
    assert (found.code, found.severity, found.location.line) == ("TXT05", "error", 2)
    assert "nonsense" in found.message


def test_outputs_have_names_of_their_own_in_time_in_proportion() -> None:
    module = nacre.core.parse(TEXT)
    labels = Labels(("a", "a", "a.1", "b"))
    named = replace(module, outputs=(1,) * 5, labels=labels)
    assert named.output_names == ("a", "a.1", "a.1.2", "b", "output4")
    many = replace(module, outputs=(1,) * 50_000)
    began = time.process_time()
    assert many.output_names[-1] == "output49999"
    assert time.process_time() - began < 2


@pytest.mark.parametrize("again", [copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_module_is_copied_and_sent_to_other_processes(
    again: Callable[[nacre.core.Module], nacre.core.Module],
) -> None:
    builder = nacre.core.Builder()
    x = builder.add("Clip", builder.input("x", "f32", (3, 2)), min=-1.0, max=2.0)
    weights = builder.constant(np.array([[1, np.nan], [-0.0, 2]], np.float32))
    module = builder.module(builder.add("MatMul", x, weights))
    made = again(module)
    assert made == module
    assert hash(made.operations) == hash(module.operations)
    (literal,) = [op.attributes["data"] for op in made.operations if "data" in op.attributes]
    assert not literal.array.flags.writeable
    with pytest.raises(TypeError, match="cannot be changed"):
        made.operations[0].attributes["name"] = "y"

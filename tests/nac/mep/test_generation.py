"""Text out of a GPT-2 of transformers: built, saved, loaded, and run by the plan in its file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nacre import nac
from nacre.base.diagnostics import InputError
from nacre.nac.mep import assemble
from nacre.nac.mep.model_machine import machine_of
from nacre.nac.mep.plans import plan_text
from nacre.nac.mep.program import read
from nacre.nac.tisa import compile_bundle
from tests.nac.tisa.made import tokenizer

pytestmark = pytest.mark.full  # with packages that CI does without


torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
executorch = pytest.importorskip("transformers.integrations.executorch")

Loose = Any
CAPACITY = 24
TEXT, TOKENS = "The quick brown fox, ", 9


@cache
def network() -> Loose:
    """Random, and with weights so large that its words differ."""
    torch.manual_seed(7)
    config = transformers.GPT2Config(
        n_embd=32, n_layer=2, n_head=4, n_positions=CAPACITY, initializer_range=0.4,
        vocab_size=tokenizer("gpt2").get_vocab_size(), bos_token_id=0, eos_token_id=0,
        tie_word_embeddings=False,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


class Windowed(torch.nn.Module):  # type: ignore[misc, name-defined]
    """All tokens at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.model = network()

    def forward(self, ids: Loose) -> Loose:
        return self.model(ids, use_cache=False).logits


class Cached(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A token at a time; keys and values are state of fixed capacity."""

    def __init__(self) -> None:
        super().__init__()
        model = network()
        model.generation_config = transformers.GenerationConfig(
            use_cache=True, cache_implementation="static"
        )
        made = executorch.TorchExportableModuleWithStaticCache
        self.inner = made(model, batch_size=1, max_cache_len=CAPACITY)

    def forward(self, ids: Loose, position: Loose) -> Loose:
        return self.inner(input_ids=ids, cache_position=position)


def _example(name: str) -> tuple[Loose, ...]:
    if name == "greedy":
        return (torch.zeros((1, CAPACITY), dtype=torch.int64),)
    return torch.tensor([[5]]), torch.tensor([0])


def _made(name: str, folder: Path) -> nac.NacModel:
    """A file with the plan of that name and its tokenizer, written and read."""
    tokenizer("gpt2").save(str(folder / "tokenizer.json"))
    made = compile_bundle(folder / "tokenizer.json")
    model = nac.build(
        Windowed() if name == "greedy" else Cached(),
        example_args=_example(name),
        manifest=made.manifest,
        resources=dict(made.resources),
        plan=read(assemble(plan_text(name))),
    )
    nac.save(model, folder / "m.nac")
    assert nac.verify(folder / "m.nac") == []
    return nac.load(folder / "m.nac")


def _expected(tokens: int) -> list[int]:
    """What transformers generates."""
    model = transformers.GPT2LMHeadModel(network().config).eval()
    model.load_state_dict(network().state_dict())
    ids = torch.tensor([tokenizer("gpt2").encode(TEXT).ids])
    made = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    found: list[int] = made[0].tolist()
    return found


@pytest.mark.parametrize("name", ["greedy", "cached"])
def test_a_file_generates_what_transformers_does(name: str, tmp_path: Path) -> None:
    machine = machine_of(_made(name, tmp_path))
    asked: Mapping[str, Any] = {"text": TEXT, "tokens": TOKENS, "end": -1, "window": CAPACITY}
    prompts = {prompt.text for prompt in machine.prompts}
    given = {key: value for key, value in asked.items() if key in prompts}
    wanted = _expected(TOKENS)
    assert len(set(wanted)) > 5  # it does not repeat itself
    for _ in range(2):  # a run starts anew, its state too
        text, ids = machine.run(given)
        assert isinstance(ids, np.ndarray)
        assert ids.tolist() == [wanted]
        assert text == tokenizer("gpt2").decode(wanted)
    end = wanted[-3]
    short, _ = machine.run({**given, "end": end})
    assert short == tokenizer("gpt2").decode(wanted[: wanted.index(end, len(wanted) - TOKENS)])


def test_a_cache_is_the_state_that_core_has(tmp_path: Path) -> None:
    model = _made("cached", tmp_path)
    module = nac.lift(model)
    caches = [state for state in module.states if "cache" in state.name]
    assert len(caches) == 4  # keys and values of two layers
    session, core_session = model.session(optimise=False), module.session()
    ids = _expected(TOKENS)
    with torch.no_grad():
        wanted = network()(torch.tensor([ids]), use_cache=False).logits[0].numpy()
    for round_ in range(2):
        for at, id_ in enumerate(ids):
            given = {"ids": np.array([[id_]]), "position": np.array([at])}
            (found,) = session.run(given)
            (other,) = core_session.run(given)
            np.testing.assert_array_equal(found, other)
            np.testing.assert_allclose(found[0, 0], wanted[at], rtol=1e-3, atol=1e-4)
        for name, held in core_session.state.items():
            np.testing.assert_array_equal(session.state[name], held)
        if not round_:
            session.reset()
            core_session.reset()


def test_a_cache_that_is_full_is_refused_with_a_place(tmp_path: Path) -> None:
    machine = machine_of(_made("cached", tmp_path))
    with pytest.raises(InputError) as refused:
        machine.run({"text": TEXT, "tokens": CAPACITY, "end": -1})
    found = refused.value.diagnostics
    assert found[0].code == "NAC97"
    assert "model_run_static" in found[0].message
    assert found[0].location.file.endswith("m.nac")

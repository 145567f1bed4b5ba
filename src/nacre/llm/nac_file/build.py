"""`nacre.llm.build_nac`: a language model as one file, which `nacre nac run` lets speak."""

from __future__ import annotations

import os
from typing import Any

from nacre.llm.model.runner import Decoder
from nacre.llm.model.weights import ModelFile
from nacre.llm.nac_file.plan import generation_plan
from nacre.llm.nac_file.program import stateful_module
from nacre.llm.nac_file.tokenizer import tokenizer_bundle
from nacre.llm.sources import open_model
from nacre.llm.tokenizer.tokenizer import Tokenizer
from nacre.llm.tokenizer.vocabulary import has_tokenizer
from nacre.nac import NacModel
from nacre.nac.build import OnReport
from nacre.nac.build import build as build_program

# Constants without a name: tables of positions, masks. They say where, and lose it in 8 bits.
_TABLES = ("c[0-9]*",)


def build_nac(
    source: str | os.PathLike[str] | ModelFile | object,
    context: int = 512,
    quant: str = "none",
    *,
    tokenizer: object = None,
    on_report: OnReport | None = None,
) -> NacModel:
    """A model with its cache as state, its tokenizer and a plan that writes text.

    - `source`, `tokenizer`: as `nacre.llm.build` takes them
    - `context`: how many tokens the cache holds
    - `quant`: how weights are stored, as `nacre.nac.build` takes it

    Without a tokenizer there is no plan either. InputError lists what stands in the way.
    """
    file = open_model(source, tokenizer)
    decoder = Decoder.from_gguf(file)
    module = stateful_module(decoder.step(context), decoder.config, decoder.weights)
    parts: dict[str, Any] = {}
    if has_tokenizer(file.metadata):
        known = Tokenizer.from_gguf(file)
        bundle = tokenizer_bundle(known)
        parts = {"resources": bundle.resources, "manifest": bundle.manifest}
        parts["plan"] = generation_plan(context, known.ends)
    return build_program(
        module, quant, d_model=decoder.config.width, keep=_TABLES if quant != "none" else (),
        on_report=on_report, **parts,
    )  # fmt: skip

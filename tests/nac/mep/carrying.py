"""A file with a plan and a tokenizer, small enough to break each of its bytes."""

from __future__ import annotations

import json

import numpy as np

from nacre import nac
from nacre.core.builder import Builder
from nacre.core.module import Module
from nacre.nac.mep import shipped_plan
from nacre.nac.mep.program import read
from nacre.nac.tisa import compile_bundle

LETTERS = "abcdefgh"


def tokenizer_json() -> str:
    """Words of one letter each."""
    vocabulary = {"[UNK]": 0, **{letter: 1 + at for at, letter in enumerate(LETTERS)}}
    vocabulary |= {f"##{letter}": 9 + at for at, letter in enumerate(LETTERS)}
    model = {
        "type": "WordPiece", "vocab": vocabulary, "unk_token": "[UNK]",
        "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
    }  # fmt: skip
    return json.dumps(
        {
            "version": "1.0",
            "model": model,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None,
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        }
    )


def successor() -> Module:
    """After a token comes the one with the next id; both forms of a letter lead to the second."""
    table = np.zeros((17, 17), np.float32)
    for id_ in range(1, 17):
        table[id_, 9 + (id_ - 1) % 8 + 1 if (id_ - 1) % 8 < 7 else 9] = 1
    builder = Builder()
    ids = builder.input("ids", "i64", (1, 8))
    return builder.module(builder.add("Gather", builder.constant(table), ids))


def carrying() -> bytes:
    """The model with the greedy plan and the tokenizer."""
    made = compile_bundle(tokenizer_json())
    plan = read(shipped_plan("greedy"))
    resources = dict(made.resources)
    model = nac.build(successor(), manifest=made.manifest, resources=resources, plan=plan)
    return nac.to_bytes(model.file)

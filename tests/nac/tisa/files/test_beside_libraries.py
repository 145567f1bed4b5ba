"""Files of SentencePiece and tiktoken beside their own packages: ids, places and texts."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from nacre.nac import tisa
from nacre.nac.tisa.files.byte_ranks import PATTERNS
from tests.nac.tisa.corpus import CORPUS, strings
from tests.nac.tisa.files.sentence_files import ranked_file

_EDGES = (
    "  foo <sep>  bar ow the quick brown \u2581 x\u2581\u2581 ", "\u2581", "\t\n", "\x01",
    "a" * 100, " " * 30 + "x", "<s> </s> <unk> <0x41> <ctl>", "333333", "",
)  # fmt: skip
_SYMBOLS = ["foo", "<sep>", "ow", "the quick"]
MODELS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "unigram, bytes": {"byte_fallback": True, "character_coverage": 0.98, "vocab_size": 1000},
    "unigram, symbols": {"user_defined_symbols": _SYMBOLS, "control_symbols": ["<ctl>"]},
    "unigram, no mark": {"add_dummy_prefix": False, "normalization_rule_name": "nfkc_cf"},
    "unigram, mark last": {"treat_whitespace_as_suffix": True},
    "bpe": {"model_type": "bpe"},
    "bpe, bytes": {
        "model_type": "bpe", "byte_fallback": True, "character_coverage": 0.98, "vocab_size": 1200,
    },
    "bpe, symbols": {
        "model_type": "bpe", "user_defined_symbols": _SYMBOLS, "remove_extra_whitespaces": False,
        "normalization_rule_name": "identity",
    },
    "bpe, white space": {
        "model_type": "bpe", "allow_whitespace_only_pieces": True, "split_by_whitespace": False,
        "remove_extra_whitespaces": False,
    },
    "word": {"model_type": "word", "vocab_size": 200},
    "char": {"model_type": "char", "vocab_size": 300},
    "char, symbols": {
        "model_type": "char", "vocab_size": 600, "user_defined_symbols": _SYMBOLS,
        "byte_fallback": True,
    },
}  # fmt: skip


def _trained(**options: Any) -> bytes:  # noqa: ANN401 - of the trainer
    library = pytest.importorskip("sentencepiece")
    written = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 20),
        model_writer=written,
        minloglevel=2,
        **({"vocab_size": 900, "hard_vocab_limit": False} | options),
    )
    return written.getvalue()


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_sentencepiece(tmp_path: Path, name: str) -> None:
    raw = _trained(**MODELS[name])
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=raw)
    (tmp_path / "spiece.model").write_bytes(raw)
    program = tisa.load(tisa.compile_tokenizer(tmp_path))
    for text in (*CORPUS, *_EDGES, *strings(2000, seed=31)):
        expected = library.encode(text, return_type="offset_mapping")
        found = program.encode_whole(text)
        assert found.ids == expected["ids"], ascii(text)
        assert found.offsets == [tuple(each) for each in expected["offsets"]], ascii(text)
        assert program.decode(found.ids) == library.decode(found.ids), ascii(text)


@pytest.mark.full
@pytest.mark.parametrize("name", PATTERNS)
def test_tiktoken(tmp_path: Path, name: str) -> None:
    library = pytest.importorskip("tiktoken")
    listed: dict[bytes, None] = {}
    for line in CORPUS:
        words = (line[at : at + size] for size in (2, 3, 5) for at in range(len(line) - size))
        for word in words:
            listed.update({word.encode()[:n]: None for n in range(2, len(word.encode()) + 1)})
    path = tmp_path / f"{name}.tiktoken"
    path.write_bytes(ranked_file(listed))
    ranks = {bytes([byte]): byte for byte in range(0x100)}
    ranks |= {token: rank for rank, token in enumerate(listed, 0x100)}
    special = {"<|end|>": len(ranks)}
    theirs = library.Encoding(
        name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens=special
    )
    program = tisa.load(tisa.compile_tokenizer(path, special_tokens=special))
    for text in (*CORPUS, *_EDGES, "a<|end|> b", *strings(2000, seed=32)):
        ids = theirs.encode(text, allowed_special="all")
        assert program.encode(text) == ids, ascii(text)
        assert program.decode(ids, skip_special_tokens=False) == theirs.decode(ids), ascii(text)

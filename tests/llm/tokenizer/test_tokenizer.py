"""Tokenizers of GGUF files: ids as other libraries have them, and what is refused."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pytest

from nacre.base.diagnostics import InputError
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.rules import tokenizer as tokenizer_rules
from nacre.llm.tokenizer.pre_tokenizers import PRE_TOKENIZERS
from nacre.llm.tokenizer.tokenizer import Tokenizer
from tests.llm.gguf_bytes import ARRAY, BOOL, F32, I32, TEXT, U32, Pair, gguf_bytes

CORPUS = [
    "Once upon a time there was a small cat, who had 3 friends and 12345 days.",
    "The dog's friends didn't know: they'll come at 10:30, or they won't!",
    "def f(x):\n    return x ** 2  # a comment\n\n\tprint(f(7))",
    "Größe, naïve café, 日本語 and Привет мир; 🙂🙃",
] * 6
TEXTS = [
    *CORPUS[:4],
    "",
    " ",
    "  two  spaces   three\n\n\n",
    "I'M we'LL 007 1,234,567.89 x²",
    "ÀÉ中文混合 abc",
    "\ttab\r\nline",
    "a" * 50,
    "unknown: ꙮ 𝄞 \u0000",
    "mixed123abc 1a2b 99999",
    "Ⅷ ½ ٣٤",
]
U21 = "<|im_start|>"


def byte_level_pairs(
    tokens: Sequence[str], merges: Sequence[str], pre: str, types: Sequence[int]
) -> list[Pair]:
    return [
        Pair("tokenizer.ggml.model", TEXT, "gpt2"),
        Pair("tokenizer.ggml.pre", TEXT, pre),
        Pair("tokenizer.ggml.tokens", ARRAY, list(tokens)),
        Pair("tokenizer.ggml.token_type", ARRAY, list(types), I32),
        Pair("tokenizer.ggml.merges", ARRAY, list(merges)),
    ]


def of(pairs: Sequence[Pair]) -> Tokenizer:
    return Tokenizer.from_gguf(parse_gguf(gguf_bytes(pairs)))


def trained(cut_name: str) -> tuple[Any, list[str], list[str]]:
    """A tokenizer of `tokenizers` that cuts as a name says, its tokens and its merges."""
    tokenizers = pytest.importorskip("tokenizers")
    import json

    pre = tokenizers.pre_tokenizers
    cut = PRE_TOKENIZERS[cut_name]
    steps = [pre.Digits(individual_digits=True)] if cut.has_single_digits else []
    if cut.pattern is not None:
        steps.append(pre.Split(tokenizers.Regex(cut.pattern), "isolated"))
    steps.append(pre.ByteLevel(add_prefix_space=False, use_regex=cut.pattern is None))
    made = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=cut.takes_words))
    made.pre_tokenizer = pre.Sequence(steps)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre.ByteLevel.alphabet(), special_tokens=[U21]
    )
    made.train_from_iterator(CORPUS, trainer)
    model = json.loads(made.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].get)
    return made, tokens, [" ".join(pair) for pair in model["merges"]]


@pytest.mark.parametrize("cut", ["gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o"])
def test_byte_level_ids_are_those_of_tokenizers(cut: str) -> None:
    theirs, tokens, merges = trained(cut)
    ours = of(byte_level_pairs(tokens, merges, cut, [3, *[1] * (len(tokens) - 1)]))
    for text in TEXTS:
        expected = theirs.encode(text, add_special_tokens=False).ids
        assert ours.encode(text) == expected, text
        assert ours.decode(expected) == text
    marked = f"{U21}user\nHi{U21}"
    assert ours.encode(marked, parse_special=True) == theirs.encode(marked).ids
    assert ours.encode(marked) != theirs.encode(marked).ids
    assert ours.decode(theirs.encode(marked).ids) == "user\nHi"


def sentence_pieces() -> tuple[Any, list[Pair]]:
    """A model of SentencePiece with bytes, and what a file says of it."""
    sentencepiece = pytest.importorskip("sentencepiece")
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=out,
        vocab_size=400,
        model_type="bpe",
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.98,
        minloglevel=2,
        user_defined_symbols=["<user>"],
    )
    made = sentencepiece.SentencePieceProcessor(model_proto=out.getvalue())
    count = made.get_piece_size()
    types = [
        2 if made.is_unknown(i) else 3 if made.is_control(i) else 6 if made.is_byte(i) else 1
        for i in range(count)
    ]
    types[made.piece_to_id("<user>")] = 4
    return made, [
        Pair("tokenizer.ggml.model", TEXT, "llama"),
        Pair("tokenizer.ggml.tokens", ARRAY, [made.id_to_piece(i) for i in range(count)]),
        Pair("tokenizer.ggml.scores", ARRAY, [made.get_score(i) for i in range(count)], F32),
        Pair("tokenizer.ggml.token_type", ARRAY, types, I32),
        Pair("tokenizer.ggml.bos_token_id", U32, 1),
        Pair("tokenizer.ggml.eos_token_id", U32, 2),
    ]


def test_sentence_piece_ids_are_those_of_sentencepiece() -> None:
    theirs, pairs = sentence_pieces()
    ours = of(pairs)
    for text in [*TEXTS, "a <user> b"]:
        if "\0" in text:
            continue  # where the package ends a text
        expected = theirs.encode(text)
        assert ours.encode(text) == [1, *expected], text
        assert ours.decode(expected) == theirs.decode(expected)
    assert ours.encode("hi</s>", parse_special=True)[-1] == 2
    assert ours.encode("hi</s>")[-1] != 2
    assert of([*pairs, Pair("tokenizer.ggml.add_bos_token", BOOL, 0)]).encode("a")[:1] != [1]


def test_bytes_that_are_no_tokens_become_the_unknown_one() -> None:
    tokens = ["<unk>", "a", "b", "ab"]
    pairs = byte_level_pairs(tokens, ["a b"], "gpt-2", [3, 1, 1, 1])
    ours = of([*pairs, Pair("tokenizer.ggml.unknown_token_id", U32, 0)])
    assert ours.encode("abaéb") == [3, 1, 0, 0, 2]


def test_text_comes_as_soon_as_its_characters_are_whole() -> None:
    _, tokens, merges = trained("gpt-2")
    ours = of(byte_level_pairs(tokens, merges, "gpt-2", [3, *[1] * (len(tokens) - 1)]))
    stream = ours.stream()
    pieces = [stream.push(i) for i in ours.encode("x 𝄞 🙂!")]
    assert "".join(pieces) + stream.finish() == "x 𝄞 🙂!"
    assert not any("\ufffd" in piece for piece in pieces)


SOUND = byte_level_pairs(["<e>", "a", "b", "ab"], ["a b"], "gpt-2", [3, 1, 1, 1])


def changed(*pairs: Pair, without: str = "") -> list[Pair]:
    kept = {pair.key: pair for pair in (*SOUND, *pairs)}
    kept.pop(without, None)
    return list(kept.values())


REFUSED = {
    "LLM10": [
        changed(without="tokenizer.ggml.model"),
        changed(without="tokenizer.ggml.tokens"),
        changed(without="tokenizer.ggml.pre"),
        changed(Pair("tokenizer.ggml.pre", TEXT, "evil")),
        changed(Pair("tokenizer.ggml.model", TEXT, "bert")),
    ],
    "LLM11": [
        changed(Pair("tokenizer.ggml.tokens", ARRAY, ["a", "a", "b", "ab"])),
        changed(Pair("tokenizer.ggml.tokens", ARRAY, [1, 2, 3, 4], U32)),
        changed(Pair("tokenizer.ggml.tokens", TEXT, "abc")),
        changed(Pair("tokenizer.ggml.merges", ARRAY, ["a c"])),
        changed(Pair("tokenizer.ggml.merges", ARRAY, ["ab"])),
        changed(Pair("tokenizer.ggml.token_type", ARRAY, [1], I32)),
        changed(Pair("tokenizer.ggml.token_type", ARRAY, [1, 1, 1, 9], I32)),
        changed(Pair("tokenizer.ggml.eos_token_id", U32, 4)),
        changed(Pair("tokenizer.ggml.add_bos_token", U32, 1)),
        changed(
            Pair("tokenizer.ggml.model", TEXT, "llama"),
            Pair("tokenizer.ggml.scores", ARRAY, [0.0] * 3, F32),
        ),
        changed(
            Pair("tokenizer.ggml.model", TEXT, "llama"),
            Pair("tokenizer.ggml.scores", ARRAY, [0.0, 1.0, float("nan"), 0.0], F32),
        ),
        changed(
            Pair("tokenizer.ggml.model", TEXT, "llama"),
            Pair("tokenizer.ggml.tokens", ARRAY, ["<e>", "", "b", "ab"]),
        ),
    ],
}


@pytest.mark.parametrize(
    ("code", "number"), [(code, n) for code, cases in REFUSED.items() for n in range(len(cases))]
)
def test_a_tokenizer_that_is_none_is_refused(code: str, number: int) -> None:
    with pytest.raises(InputError) as refused:
        of(REFUSED[code][number])
    assert [finding.code for finding in refused.value.diagnostics] == [code], str(refused.value)


@pytest.mark.parametrize("index", [-1, 4, 1 << 40])
def test_ids_that_no_token_has_are_refused(index: int) -> None:
    with pytest.raises(InputError, match="LLM12"):
        of(SOUND).decode([index])


def test_every_code_is_shown() -> None:
    codes = {code for code in vars(tokenizer_rules) if code.startswith("LLM")}
    assert codes == {*REFUSED, "LLM12"}

"""NAC60-NAC70: PROC: the program of a tokenizer, its vocabulary, and what it is compiled from."""

from nacre.base.rules import declare

_PROC = "NAC / Data and resource sections / PROC section"
_RSRC = "NAC / Data and resource sections / RSRC section"
_NAC = "NAC"

NAC60 = declare(
    "NAC60", "manifest-unknown", _PROC,
    """
    The manifest does not begin with the four bytes `TISA` and the version 1.
    """, language=_NAC)  # fmt: skip
NAC61 = declare(
    "NAC61", "step-unknown", _PROC,
    """
    The manifest has an instruction with an opcode that TISA does not have. To skip it would give
    other ids in silence, so that the program is refused.
    """, language=_NAC)  # fmt: skip
NAC62 = declare(
    "NAC62", "step-payload", _PROC,
    """
    The payload of an instruction contradicts the instruction: bytes are left over, a flag or a kind
    has a value without meaning, or a name is none of Unicode's normal forms or categories.
    """, language=_NAC)  # fmt: skip
NAC63 = declare(
    "NAC63", "pattern", _PROC,
    """
    A rule of PARTITION_RULES has a pattern that is malformed, that matches the empty text, or that
    uses what cannot be matched in linear time, such as a reference to an earlier group.
    """, language=_NAC)  # fmt: skip
NAC64 = declare(
    "NAC64", "step-order", _PROC,
    """
    The instructions stand in an order without meaning. A program has one instruction that encodes
    (BPE, WORDPIECE or UNIGRAM); what changes or cuts the text stands before it, COMPOSE behind it,
    once at most.
    """, language=_NAC)  # fmt: skip
NAC65 = declare(
    "NAC65", "vocabulary", _RSRC,
    """
    The compiled vocabulary (`vocab.b`, `vidx.b`, `merges.b`) contradicts itself: offsets that lead
    elsewhere than to entries in order, a token or an id twice, an index that names another token,
    a merge of tokens that do not exist. Or a resource of ours is malformed: `nacre.decoder.json`,
    which says how ids become text where the instructions do not tell, `nacre.encoding.json`, which
    says how pairs and lengths are treated, or `nacre.scores.b`, whose scores of 64 bits must round
    to those of the vocabulary.
    """, language=_NAC)  # fmt: skip
NAC66 = declare(
    "NAC66", "token-missing", _RSRC,
    """
    The program needs a resource or a token that is not there: the vocabulary, the merges of BPE, a
    token that COMPOSE names.
    """, language=_NAC)  # fmt: skip
NAC67 = declare(
    "NAC67", "token-budget", _PROC,
    """
    The program takes more steps, or makes more text, than a tokenizer needs for a text of this
    length. The budget grows with the length of the text and with nothing else.
    """, language=_NAC)  # fmt: skip
NAC68 = declare(
    "NAC68", "tokenizer-unreadable", _PROC,
    """
    The tokenizer cannot be read: there is no `tokenizer.json` and no other file of one, or it is
    malformed, or it contradicts itself.
    """, language=_NAC)  # fmt: skip
NAC69 = declare(
    "NAC69", "tokenizer-no-form", _PROC,
    """
    A program cannot say what the tokenizer does: a part that the `tokenizers` library does not have
    either, a pattern that is not matched in linear time, merges that are left out at random, a
    template that has a text twice. The message says which part and why. Nothing is approximated: a
    program that gives other ids for some text is none. A file of tiktoken does not say how text is
    cut; without a pattern there is no program.

    The finding names the part by its place in `tokenizer.json`, or the file.
    """, language=_NAC)  # fmt: skip
NAC70 = declare(
    "NAC70", "tokenizer-input", _PROC,
    """
    What a tokenizer is given cannot be encoded or decoded: a text with half of a surrogate pair, an
    id that the vocabulary does not have, a length that special tokens alone exceed, padding of a
    tokenizer that names no token for it.
    """, language=_NAC)  # fmt: skip

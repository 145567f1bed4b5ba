"""The grammar that docs/nem_spec.md prints is the one that the parser reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from nacre.base.source import Source
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.syntax.parser import parse

PAGE = Path(__file__).parents[3] / "docs/nem_spec.md"
TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]\w*|[|()?*;=]')
DEEP = 14  # from here on, what may be left out is, and the first choice is taken
SENTENCES = 40

# A rule is a choice between sequences; a member of a sequence is an item and how often it stands.
Item = tuple["str | Rule", str]
Rule = list[list[Item]]


def printed_grammar() -> dict[str, Rule]:
    block = re.search(r"^```ebnf\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert block is not None
    tokens = TOKEN.findall(block[1])
    grammar: dict[str, Rule] = {}
    while tokens:
        name, equals = tokens.pop(0), tokens.pop(0)
        assert equals == "=", name
        assert name not in grammar
        grammar[name] = read_rule(tokens)
        assert tokens.pop(0) == ";", name
    return grammar


def read_rule(tokens: list[str]) -> Rule:
    rule: Rule = [[]]
    while tokens[0] not in (";", ")"):
        token = tokens.pop(0)
        if token == "|":
            rule.append([])
            continue
        item: str | Rule = token
        if token == "(":
            item = read_rule(tokens)
            assert tokens.pop(0) == ")"
        times = tokens.pop(0) if tokens[0] in ("?", "*") else ""
        rule[-1].append((item, times))
    return rule


GRAMMAR = printed_grammar()
COMPUTES = sorted(set(OPCODES) - {"transfer", "store"})


def names_in(rule: Rule) -> set[str]:
    found: set[str] = set()
    for sequence in rule:
        for item, _ in sequence:
            found |= {item} if isinstance(item, str) else names_in(item)
    return found


def terminal(name: str, random: Random) -> str:
    form = random.choice(["async", "sync"])
    words: Mapping[str, list[str]] = {
        "ID": [f"X_{random.randrange(10**9)}"],  # what is declared twice is a rule's business
        "INT": ["0", "7", "64"],
        "FLOAT": ["0.5", "1.0e-5"],
        "STRING": ['"npm_lite.nem"', '"core.Erf"'],
        "MOVE": [f"transfer.{form}", f"store.{form}"],
        "COMPUTE": [f"{name}.{form}" for name in COMPUTES],
    }
    return random.choice(words[name])


def sentence(rule: Rule, random: Random, depth: int = 0) -> list[str]:
    sequence = rule[0] if depth > DEEP else random.choice(rule)
    words: list[str] = []
    for item, times in sequence:
        most = {"": 1, "?": random.randrange(2), "*": random.randrange(3)}[times]
        for _ in range(most if times == "" or depth <= DEEP else 0):
            words += expanded(item, random, depth + 1)
    return words


def expanded(item: str | Rule, random: Random, depth: int) -> list[str]:
    if not isinstance(item, str):
        return sentence(item, random, depth)
    if item.startswith('"'):
        return [item[1:-1]]
    return sentence(GRAMMAR[item], random, depth) if item in GRAMMAR else [terminal(item, random)]


def written(words: list[str]) -> str:
    """Names with dots and what a form belongs to are one word."""
    return re.sub(r" \. ", ".", " ".join(words))


def test_every_rule_is_used_and_every_name_is_defined() -> None:
    used = {name for rule in GRAMMAR.values() for name in names_in(rule)}
    names = {name for name in used if not name.startswith('"')}
    assert names - GRAMMAR.keys() == {"ID", "INT", "FLOAT", "STRING", "MOVE", "COMPUTE"}
    assert GRAMMAR.keys() - names == {"document"}


@pytest.mark.parametrize("rule", ["document", "statement", "task", "family", "device_config"])
def test_the_parser_reads_what_the_grammar_says(rule: str) -> None:
    random = Random(rule)
    for _ in range(SENTENCES):
        text = written(sentence(GRAMMAR[rule], random))
        found = parse(Source("grammar.nem", text)).diagnostics
        assert [str(each) for each in found if each.severity == "error"] == [], text


@pytest.mark.fuzz
def test_the_parser_reads_many_sentences_of_the_grammar() -> None:
    for seed in range(300):
        text = written(sentence(GRAMMAR["document"], Random(seed)))
        found = parse(Source("grammar.nem", text)).diagnostics
        assert [str(each) for each in found if each.severity == "error"] == [], text


@pytest.mark.parametrize(
    ("rule", "word"),
    [("loop", "endloop"), ("buffer", "size"), ("compute", "out"), ("attributes", "elem")],
)
def test_a_sentence_that_lacks_a_word_is_no_sentence(rule: str, word: str) -> None:
    random = Random(0)
    words = sentence(GRAMMAR[rule], random)
    at = words.index(word)
    text = written([*words[:at], *words[at + 1 :]])
    before = {"attributes": "let r = region(B, 0, 64) "}.get(rule, "")
    assert parse(Source("grammar.nem", before + text)).diagnostics

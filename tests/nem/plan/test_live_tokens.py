"""The bound on live tokens against random schedules of random programs."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nacre.base.source import Source
from nacre.nem.model.devices import default_device
from nacre.nem.model.resolver import resolve
from nacre.nem.plan.live_tokens import live_tokens
from nacre.nem.plan.plan import Plan, build_plan
from nacre.nem.syntax.parser import parse
from tests.nem.plan.sketches import Item, Loop, Task, program_text, sketches


@dataclass
class Node:
    """A task instance, or a gate: a passed `wait`, the start or the end of an iteration."""

    is_task: bool
    before: list[int]  # nodes that are complete when it starts
    named_by: list[int] = field(default_factory=list)


@dataclass
class Machine:
    """Starts and completes the instances of a program in any order that the language allows."""

    nodes: list[Node] = field(default_factory=list)

    def node(self, is_task: bool, *before: int) -> int:
        self.nodes.append(Node(is_task, list(before)))
        return len(self.nodes) - 1

    def naming(self, is_task: bool, gate: int, tokens: list[int]) -> int:
        made = self.node(is_task, gate, *tokens)
        for token in tokens:
            self.nodes[token].named_by.append(made)
        return made

    def body(self, items: tuple[Item, ...], gate: int, visible: dict[str, int]) -> list[int]:
        tokens, made = dict(visible), [gate]
        for item in items:
            if isinstance(item, Loop):
                gate = self.loop(item, gate, tokens)
            elif isinstance(item, Task):
                task = self.naming(True, gate, [tokens[t] for t in item.deps])
                tokens[item.token] = task
                made.append(task)
                if item.is_sync:
                    gate = self.naming(False, gate, [task])
            else:
                gate = self.naming(False, gate, [tokens[t] for t in item.tokens])
            made.append(gate)
        return made

    def loop(self, loop: Loop, gate: int, tokens: dict[str, int]) -> int:
        done: list[int] = []
        for ordinal in range(loop.last - loop.first + 1):
            start = self.node(False, gate, *done[: max(0, ordinal - loop.window + 1)])
            done.append(self.node(False, *self.body(loop.body, start, tokens)))
        return self.node(False, gate, *done)

    def most_alive(self, choice: random.Random) -> int:
        """The most tokens alive at once in one random run that likes to start tasks."""
        started: set[int] = set()
        complete: set[int] = set()
        patience = choice.random()
        most = 0
        while len(complete) < len(self.nodes):
            startable = [
                n
                for n, node in enumerate(self.nodes)
                if n not in started and complete.issuperset(node.before)
            ]
            running = sorted(started - complete)
            if startable and (not running or choice.random() < patience):
                chosen = choice.choice(startable)
                started.add(chosen)
                if not self.nodes[chosen].is_task:
                    complete.add(chosen)
            else:
                complete.add(choice.choice(running))
            most = max(most, sum(self.is_alive(n, started, complete) for n in started))
        return most

    def is_alive(self, n: int, started: set[int], complete: set[int]) -> bool:
        node = self.nodes[n]
        return node.is_task and (n not in complete or not started.issuperset(node.named_by))


def machine_of(items: tuple[Item, ...]) -> Machine:
    machine = Machine()
    machine.body(items, machine.node(False), {})
    return machine


def plan_of(text: str) -> Plan:
    source = Source("sketch.nem", text)
    return build_plan(resolve(source, parse(source).document).program, 100_000)


def bound_of(text: str) -> int:
    bounds = list(live_tokens(plan_of(text), default_device(), 10**9))
    assert [bound.engine for bound in bounds] in ([], [0])
    return sum(bound.most for bound in bounds)


@given(sketches(), st.integers(0, 2**32))
def test_no_schedule_has_more_tokens_alive_than_the_bound(
    items: tuple[Item, ...], seed: int
) -> None:
    machine, choice = machine_of(items), random.Random(seed)
    bound = bound_of(program_text(items))
    for _ in range(8):
        assert machine.most_alive(choice) <= bound, program_text(items)


COPY = "transfer.async(dst=region(B, {0}, 1), src=region(A, {0}, 1){1})"
HEAD = "buffer A : DDR (size=64)\nbuffer B : L2 (size=64)\n"


def copy(token: str, place: object, deps: str = "") -> str:
    return f"{token} = " + COPY.format(place, f", deps=[{deps}]" if deps else "")


def loop(variable: str, last: int, window: int, *body: str) -> str:
    head = f"loop {variable} in [0..{last}] @max_in_flight({window}):"
    return "\n".join([head, *body, "endloop"])


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        ([copy("a", 0), copy("b", 1), copy("c", 2)], 3),
        ([copy("a", 0), "wait(a)", copy("b", 1)], 1),
        ([copy("a", 0), copy("b", 1, "a"), copy("c", 2, "b")], 1),
        # A token that is named twice lives until the second has started.
        ([copy("a", 0), copy("b", 1, "a"), copy("c", 2, "a")], 3),
        # What a `wait` has seen complete lives on when it is named further down.
        ([copy("a", 0), "wait(a)", copy("b", 1), copy("c", 2, "a")], 2),
        ([loop("i", 7, 3, copy("a", "i"))], 3),
        ([loop("i", 1, 3, copy("a", "i"))], 2),
        # One loop after the other: `endloop` waits, so the second reuses the first one's tokens.
        ([loop("i", 7, 3, copy("a", "i")), loop("j", 7, 2, copy("b", "j")), copy("c", 9)], 3),
        # Named inside the loop, a token from outside lives as long as the loop.
        ([copy("a", 9), loop("i", 7, 1, copy("b", "i", "a"))], 2),
        ([copy("a", 9), "wait(a)", loop("i", 7, 1, copy("b", "i"))], 1),
        ([loop("i", 7, 2, loop("j", 7, 3, copy("a", "i"), copy("b", "j", "a")))], 6),
    ],
)
def test_the_bound_is_as_small_as_a_reader_would_say(lines: list[str], most: int) -> None:
    assert bound_of(HEAD + "\n".join(lines) + "\n") == most

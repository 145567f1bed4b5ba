"""Products of many batches whose tensors are too large for L2: a few batches after the others.

Scores of attention grow with the square of a text, and between the two products they are written
and read three times. Heads do not see each other, so where the scores of all of them have to lie in
DDR, those of some heads are made, weighed and used up before the next heads are begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from nacre.compile.legalise.contract import escapes_at
from nacre.compile.legalise.legal_module import Legal
from nacre.core.builder import Builder
from nacre.core.module import CoreOperation, Module, TensorType
from nacre.core.ops import OPS
from nacre.core.rewrite.graph import users_of

_LARGE = 0.5  # of L2 for a tensor: what is read and what is written are there at a time
_PART = 0.2  # of L2 for a part of it, which leaves room for what is made of the part before
Users = Mapping[int, Sequence[CoreOperation]]


def split_batches(legal: Legal, l2_bytes: int) -> Legal:
    """The module with chains of batched products in parts, where their tensors exceed L2."""
    module, limit = legal.module, int(l2_bytes * _LARGE)
    users = users_of(module)
    chains: list[_Chain] = []
    taken: set[int] = set()
    for op in module.operations:
        if op.value_id in taken or not _is_product(op) or op.type.size_bytes <= limit:
            continue
        chain = _chain_of(module, users, op, limit)
        if chain is not None and taken.isdisjoint(chain.members):
            chains.append(chain)
            taken |= chain.members
    if not chains:
        return legal
    writer = _Writer(module, chains)
    made = writer.module()
    known = legal.origins
    origins = {new: known[old] for new, old in writer.origins.items() if old in known}
    escaped = escapes_at(legal.precision, made, legal.lacking)
    notes = tuple(dict.fromkeys(map(_note, chains)))
    return replace(
        legal, module=made, origins=origins, escaped=escaped, notes=(*legal.notes, *notes)
    )


@dataclass(frozen=True)
class _Chain:
    """Operations that compute each batch by itself, in their order."""

    operations: tuple[CoreOperation, ...]
    exits: tuple[CoreOperation, ...]  # those whose results others use
    batches: int
    parts: int
    largest: int  # bytes of a tensor

    @property
    def members(self) -> frozenset[int]:
        return frozenset(op.value_id for op in self.operations)


def _note(chain: _Chain) -> str:
    return (
        f"products of {chain.batches} batches are computed in {chain.parts} parts: "
        f"their results of {chain.largest:,} bytes leave L2 no room"
    )


def _chain_of(module: Module, users: Users, first: CoreOperation, limit: int) -> _Chain | None:
    """What belongs to a product whose result is too large; None where parts would not help."""
    batches = first.type.shape[0]
    members = _members(module, users, first, limit)
    if members is None:
        return None
    operations = tuple(op for op in module.operations if op.value_id in members)
    outputs = frozenset(module.outputs)
    exits = tuple(
        op
        for op in operations
        if op.value_id in outputs or any(u.value_id not in members for u in users[op.value_id])
    )
    last = exits[-1].value_id  # where all parts are made: nobody may need them before
    if any(
        user.value_id not in members and user.value_id < last
        for op in exits
        for user in users[op.value_id]
    ):
        return None
    largest = max(op.type.size_bytes for op in operations)
    counts = (n for n in range(2, batches + 1) if batches % n == 0)
    parts = next((n for n in counts if largest * _LARGE <= n * limit * _PART), batches)
    return _Chain(operations, exits, batches, parts, largest)


def _members(
    module: Module, users: Users, first: CoreOperation, limit: int
) -> frozenset[int] | None:
    """A product, what follows it batch by batch, and products beside it that are joined to it."""
    batches = first.type.shape[0]
    found = {first.value_id}
    pending = [first]
    while pending:
        op = pending.pop()
        is_large = op.type.size_bytes > limit
        if is_large and op.value_id in module.outputs:
            return None
        for user in users[op.value_id]:
            if user.value_id in found:
                continue
            if _keeps_batches(module, user, batches):
                found.add(user.value_id)
                pending.append(user)
            elif is_large:
                return None  # it would be needed whole
    for op in reversed(module.operations):
        if (
            op.value_id not in found
            and _is_product(op)
            and _keeps_batches(module, op, batches)
            and users[op.value_id]
            and all(user.value_id in found for user in users[op.value_id])
        ):
            found.add(op.value_id)
    return frozenset(found)


def _is_product(op: CoreOperation) -> bool:
    return op.opcode == "MatMul" and op.type.rank == 3 and op.type.shape[0] > 1


def _keeps_batches(module: Module, op: CoreOperation, batches: int) -> bool:
    """Whether an operation computes each place of the first axis from that place alone."""
    if op.type.rank < 2 or op.type.shape[0] != batches:
        return False
    if not any(module.by_id[value].type.shape[:1] == (batches,) for value in op.operands):
        return False
    opcode, given = op.opcode, OPS[op.opcode].with_defaults(op.attributes)
    if "elementwise" in OPS[opcode].traits:
        return not any(
            "constant" in OPS[maker.opcode].traits and _is_batched(maker.type, op.type)
            for maker in (module.by_id[value] for value in op.operands)
        )
    if opcode == "MatMul":
        return op.type.rank == 3
    if opcode in ("Softmax", "Concat"):
        return bool(int(given["axis"]) % op.type.rank != 0)
    if opcode == "Slice":
        return (given["starts"][0], given["ends"][0], given["steps"][0]) == (0, batches, 1)
    return opcode == "Reshape"


def _is_batched(operand: TensorType, result: TensorType) -> bool:
    """Whether an operand has a part for each batch, and is not stretched over all of them."""
    return operand.rank == result.rank and operand.shape[0] == result.shape[0]


class _Writer:
    """Writes a module anew, chains part by part."""

    def __init__(self, module: Module, chains: Sequence[_Chain]) -> None:
        self._module, self._builder = module, Builder()
        self._ids: dict[int, int] = {}
        self._members = frozenset().union(*(chain.members for chain in chains))
        self._chains = {chain.exits[-1].value_id: chain for chain in chains}
        self.origins: dict[int, int] = {}  # by new value the old one

    def module(self) -> Module:
        """All of it."""
        for op in self._module.operations:
            if op.value_id not in self._members:
                self._ids[op.value_id] = self._copy(op, [self._ids[o] for o in op.operands])
            elif op.value_id in self._chains:
                self._write_chain(self._chains[op.value_id])
        return self._builder.module(*(self._ids[value] for value in self._module.outputs))

    def _write_chain(self, chain: _Chain) -> None:
        step = chain.batches // chain.parts
        parts: dict[int, list[int]] = defaultdict(list)  # of each exit
        for first in range(0, chain.batches, step):
            made = dict(self._write_part(chain, first, first + step))
            for op in chain.exits:
                parts[op.value_id].append(made[op.value_id])
        for op in chain.exits:
            joined = self._builder.add("Concat", *parts[op.value_id], axis=0)
            self._ids[op.value_id] = self._note_origin(joined, op)

    def _write_part(self, chain: _Chain, first: int, end: int) -> Iterator[tuple[int, int]]:
        made: dict[int, int] = {}
        outside: dict[tuple[int, int], int] = {}
        for op in chain.operations:
            operands = []
            for value in op.operands:
                if value in made:
                    operands.append(made[value])
                    continue
                key = value, op.type.rank  # of another rank it may be stretched over all batches
                if key not in outside:
                    outside[key] = self._part_of(op, value, first, end)
                operands.append(outside[key])
            made[op.value_id] = self._copy(op, operands, end - first)
            yield op.value_id, made[op.value_id]

    def _part_of(self, op: CoreOperation, value: int, first: int, end: int) -> int:
        """Some batches of what comes from outside; all of what every batch takes."""
        operand, new = self._module.by_id[value].type, self._ids[value]
        if not _is_batched(operand, op.type):
            return new
        starts, ends = (first, *(0,) * (operand.rank - 1)), (end, *operand.shape[1:])
        steps = (1,) * operand.rank
        return self._note_origin(
            self._builder.add("Slice", new, starts=starts, ends=ends, steps=steps), op
        )

    def _copy(self, op: CoreOperation, operands: Sequence[int], batches: int | None = None) -> int:
        """The same operation, of fewer batches where it says how many."""
        if batches is None:
            return self._note_origin(self._builder.copy(op, tuple(operands)), op)
        given = dict(op.attributes)
        for name in ("new_shape", "ends", "shape"):
            if name in given and op.opcode in ("Reshape", "Slice"):
                given[name] = (batches, *given[name][1:])
        return self._note_origin(self._builder.add(op.opcode, *operands, **given), op)

    def _note_origin(self, value: int, op: CoreOperation) -> int:
        self.origins[value] = op.value_id
        return value

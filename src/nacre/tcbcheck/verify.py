"""The proof as a whole: instances, meaning, memory, order, and that nothing waits for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise

from nacre.base.diagnostics import Diagnostic
from nacre.base.source import Span
from nacre.base.stages import stage
from nacre.nem.model.program import Buffer, Program
from nacre.nem.plan.plan import Plan
from nacre.tcb.figures import Figures
from nacre.tcb.image import Image, Placement
from nacre.tcb.machine.instances import Instances, unroll
from nacre.tcb.machine.timing import time_instances
from nacre.tcbcheck.conflicts import Conflict, find_conflicts
from nacre.tcbcheck.constants import compare_constants
from nacre.tcbcheck.conversions import compare_conversion
from nacre.tcbcheck.correspondence import Correspondence, Mismatch, TaskBlock, match_blocks
from nacre.tcbcheck.live_tokens import TokenShortage, find_shortages
from nacre.tcbcheck.meaning import compare_meaning
from nacre.tcbcheck.open_order import OpenOrder
from nacre.tcbcheck.rules import TCB80, TCB83, TCB84, TCB85, TCB86, TCB87, TCB89, TCB92
from nacre.tcbcheck.streams import StreamFault, chain_problem, find_stream_faults, streamed_operands
from nacre.tcbcheck.tag_order import Ordering, Stuck, Unordered, order_by_tags
from nacre.tcbcheck.target import Target, compare_machine, compare_ports
from nacre.tcbcheck.units import unit_problem

_LOST_SIGNAL = "where a signal comes before its tag is raised"
_MOST_FINDINGS = 20  # of a kind
_MOST_OPEN = 4000  # instances of an image whose order is found without clocks


def verify_image(
    plan: Plan,
    image: Image,
    constants: Mapping[str, bytes] | None = None,
    target: Target | None = None,
) -> list[Diagnostic]:
    """Every way in which an image does not mean what a plan without errors means.

    `constants` are what buffers of the program hold before a run. Without a target the image's own
    machine, ports and units are taken as given.
    """
    return list(_Verifier(plan, image, constants or {}, target).findings())


class _Verifier:
    def __init__(
        self, plan: Plan, image: Image, constants: Mapping[str, bytes], target: Target | None
    ) -> None:
        self._constants, self._target = constants, target
        self._visible = target.visible(plan.program) if target is not None else frozenset()
        self._figures = Figures(dict(image.machine.figures))
        self._plan, self._program, self._image = plan, plan.program, image
        self._instances: Instances = unroll(image)
        self._tasks: dict[int, TaskBlock] = {}  # by the index of the block
        blocks, pairs = self._instances.blocks, self._instances.consuming_block.items()
        self._consumers = {blocks[producer]: blocks[consumer] for producer, consumer in pairs}

    def findings(self) -> Iterator[Diagnostic]:
        """What is wrong; order is looked at where the rest is right."""
        placements = {placement.buffer: placement for placement in self._image.placements}
        wrong = list(self._target_findings(placements))
        wrong += _placement_findings(self._program, self._image, placements, self._target)
        with stage("verifying: tasks"):
            matched = match_blocks(self._plan, self._instances)
            wrong += (self._mismatch(one) for one in matched.mismatches[:_MOST_FINDINGS])
            if not wrong:
                wrong += self._meanings(matched, placements)
            if not wrong:
                found = compare_constants(
                    self._program, self._image, self._constants, matched.blocks
                )
                wrong += islice(found, _MOST_FINDINGS)
        yield from wrong
        if not wrong:
            with stage("verifying: order"):
                yield from self._order(matched)

    def _target_findings(self, placements: dict[str, Placement]) -> Iterator[Diagnostic]:
        if self._target is not None:
            yield from compare_machine(self._program, self._image.machine, self._target)
            yield from compare_ports(self._program, self._image, placements, self._target)

    def _meanings(
        self, matched: Correspondence, placements: dict[str, Placement]
    ) -> Iterator[Diagnostic]:
        count = 0
        for block in matched.blocks:
            for finding in self._block_findings(block, placements):
                yield finding
                count += 1
                if count == _MOST_FINDINGS:
                    return

    def _block_findings(
        self, block: TaskBlock, placements: dict[str, Placement]
    ) -> Iterator[Diagnostic]:
        if block.conversion is None:
            found = list(compare_meaning(self._program, block, placements, self._constants))
        else:
            found = list(compare_conversion(self._program, block, block.conversion, placements))
        yield from found
        problem = self._chain_problem(block)
        if problem is not None:
            span = self._program.span(block.task.node)
            yield TCB87.at(span, f"the block of `{block.task.name}` {problem}")

        if not found:
            yield from self._unwritten(block)
            yield from self._misplaced(block)

    def _misplaced(self, block: TaskBlock) -> Iterator[Diagnostic]:
        if self._target is not None:
            problem = unit_problem(block, self._target.device, self._figures)
            if problem is not None:
                span = self._program.span(block.task.node)
                yield TCB92.at(span, f"the block of `{block.task.name}` {problem}")

    def _unwritten(self, block: TaskBlock) -> Iterator[Diagnostic]:
        """Values that pass by although the program wants them in memory."""
        for operand in streamed_operands(block):
            buffer = operand.region.buffer if operand.region is not None else None
            why = "of a region with `@materialized`"
            if not operand.carries("materialized"):
                if buffer is None or buffer.name not in self._visible:
                    continue
                why = f"of `{buffer.name}`, which the host sees"
            message = f"the block of `{block.task.name}` streams a value {why}"
            yield TCB87.at(self._program.span(operand.node), message)

    def _chain_problem(self, block: TaskBlock) -> str | None:
        if not block.found.block.is_chained:
            return None
        after = self._consumers.get(block.found)
        return chain_problem(block, None if after is None else after.block)

    def _order(self, matched: Correspondence) -> Iterator[Diagnostic]:
        numbers = {id(found): index for index, found in enumerate(self._instances.blocks)}
        self._tasks = {numbers[id(block.found)]: block for block in matched.blocks}
        faults = find_stream_faults(self._plan, self._instances, self._tasks)
        yield from (self._stream_fault(fault) for fault in islice(faults, _MOST_FINDINGS))
        order = order_by_tags(self._instances)
        if order.stuck:
            yield from (self._stuck(one) for one in order.stuck[:_MOST_FINDINGS])
        elif order.unordered and self._instances.count > _MOST_OPEN:
            yield self._unproved_finding(order.unordered[0])
        elif order.unordered:
            has_queues = self._figures.count("queue.depth") > 0
            yield from self._open_order(OpenOrder(self._instances, has_queues), order.unordered[0])
        else:
            yield from self._conflicts(
                find_conflicts(self._instances, order, self._reordered_blocks)
            )
            yield from self._shortages(order)

    def _open_order(self, order: OpenOrder, found: Unordered) -> Iterator[Diagnostic]:
        met = find_conflicts(self._instances, order, self._reordered_blocks)
        conflicts = list(filter(self._plan_orders, met))
        certain = (
            one for one in conflicts if one.is_ordered or order.is_open(one.first, one.second)
        )
        wrong = [self._lost(conflict) for conflict in islice(certain, _MOST_FINDINGS)]
        stuck = order.find_stuck()
        wrong += (self._stuck(one, _LOST_SIGNAL) for one in stuck[:_MOST_FINDINGS])
        if wrong:
            yield from wrong
        elif conflicts or not order.is_free_of_stops:
            yield self._unproved_finding(found)
        else:
            yield from self._shortages(order)

    def _shortages(self, order: Ordering) -> Iterator[Diagnostic]:
        limit = self._image.machine.token_limit
        if limit is None:
            return
        shortages = list(find_shortages(self._instances, order, limit))
        if shortages and (self._image.machine.figures or self._is_stuck()):
            yield from (self._shortage(one, limit) for one in shortages)

    def _is_stuck(self) -> bool:
        """Whether ideal hardware comes to a point where nothing can start."""
        return time_instances(self._instances).is_stuck

    def _shortage(self, found: TokenShortage, limit: int) -> Diagnostic:
        alive = f"{found.most} tokens may be alive at once on engine {found.engine}"
        message = f"{alive}, which keeps {limit}: {self._name(found.instance)} may wait for ever"
        return TCB89.at(self._span(found.instance), message)

    def _conflicts(self, conflicts: Iterable[Conflict]) -> Iterator[Diagnostic]:
        lost = filter(self._plan_orders, conflicts)
        yield from (self._lost(conflict) for conflict in islice(lost, _MOST_FINDINGS))

    @property
    def _reordered_blocks(self) -> set[int]:
        """Blocks that stand elsewhere in program order than a task that they do."""
        return {
            index
            for index, block in self._tasks.items()
            if any(task.position != block.found.position for task in block.tasks)
        }

    def _task(self, instance: int) -> tuple[TaskBlock, int]:
        """The block of a task's instance, and the row of its grid."""
        block = self._tasks[int(self._instances.block[instance])]
        return block, int(block.rows[int(self._instances.row[instance])])

    def _plan_orders(self, conflict: Conflict) -> bool:
        ends = [self._task(conflict.first), self._task(conflict.second)]
        if conflict.is_ordered:  # by tags: what may be wrong is that it is so
            ends.reverse()
        (first, row), (second, other) = ends
        ordinals = [int(column[row]) for column in first.grid.ordinals]
        others = [int(column[other]) for column in second.grid.ordinals]
        before = self._plan.order.before
        return any(before(a, ordinals, b, others) for a in first.tasks for b in second.tasks)

    def _name(self, instance: int) -> str:
        """An instance in words: a task with its iteration, or what else a block is."""
        index, row = int(self._instances.block[instance]), int(self._instances.row[instance])
        found = self._instances.blocks[index]
        iteration = found.grid.iteration(row)
        where = f" in iteration {list(iteration)}" if iteration else ""
        matched = self._tasks.get(index)
        name = matched.task.name if matched else f"{found.block.kind} #{found.block.position}"
        return f"`{name}`{where}"

    def _span(self, instance: int) -> Span:
        block = self._instances.blocks[int(self._instances.block[instance])].block
        return self._span_at(block.position)

    def _span_at(self, position: int) -> Span:
        """The statement of a position, or the loop that ends there."""
        statements = {s.position: s for s in self._program.statements}
        loops = {loop.end: loop for loop in self._program.loops}
        statement = statements.get(position) or loops.get(position)
        if statement is None:
            return self._program.source.span(0, 0)
        return self._program.span(statement.node)

    def _stuck(self, stuck: Stuck, when: str = "when all before it is over") -> Diagnostic:
        tag = self._instances.tags.name(stuck.tag)
        wait = f"for {tag} to reach {stuck.value}, which is at {stuck.count}"
        message = f"{self._name(stuck.instance)} waits {wait} {when}"
        return TCB85.at(self._span(stuck.instance), message)

    def _unproved_finding(self, found: Unordered) -> Diagnostic:
        events = f"{self._name(found.first)} and {self._name(found.second)}"
        message = (
            f"{events} both raise {self._instances.tags.name(found.tag)}, in an order that is open"
        )
        return TCB86.at(self._span(found.second), message)

    def _lost(self, conflict: Conflict) -> Diagnostic:
        writes = (conflict.first_writes, conflict.second_writes)
        kinds = ["writes" if is_write else "reads" for is_write in writes]
        bytes_ = f"bytes {conflict.low:#x} to {conflict.high - 1:#x} of {conflict.memory}"
        first = f"{self._name(conflict.first)} {kinds[0]}"
        second = f"{self._name(conflict.second)} {kinds[1]} them"
        how = "no tag orders the two"
        if conflict.is_ordered:
            how = "the program has them the other way round"
        return TCB84.at(self._span(conflict.second), f"{first} {bytes_} and {second}, and {how}")

    def _stream_fault(self, fault: StreamFault) -> Diagnostic:
        what = "which is streamed and in no memory" if fault.writer >= 0 else "which nobody streams"
        whose = f"the value of {self._name(fault.writer)}" if fault.writer >= 0 else "a value"
        message = f"{self._name(fault.reader)} reads {whose}, {what}"
        return TCB87.at(self._program.span(fault.operand.node), message)

    def _mismatch(self, wrong: Mismatch) -> Diagnostic:
        where = f" in iteration {list(wrong.iteration)}" if wrong.iteration else ""
        if wrong.task is None:
            message = f"a block of statement {wrong.position}{where} stands for no task there"
            return TCB80.at(self._span_at(wrong.position), message)
        has = "no block" if wrong.blocks == 0 else f"{wrong.blocks} blocks"
        message = f"`{wrong.task.name}`{where} has {has}, expected one"
        return TCB80.at(self._program.span(wrong.task.node), message)


def _placement_findings(
    program: Program, image: Image, placements: dict[str, Placement], target: Target | None
) -> Iterator[Diagnostic]:
    sizes = dict(image.machine.memories)
    if target is not None:
        own = target.sizes
        sizes = {"DDR": min(own.ddr, sizes.get("DDR", 0)), "L2": own.l2, "L1": own.l1}
    for buffer in program.buffers:
        problem = _placement_problem(buffer, placements.get(buffer.name), sizes)
        if problem is not None:
            yield TCB83.at(program.span(buffer.node), f"buffer `{buffer.name}` {problem}")
    by_memory: dict[str, list[Placement]] = {}
    for placement in image.placements:
        by_memory.setdefault(placement.memory, []).append(placement)
    nodes = {buffer.name: buffer.node for buffer in program.buffers}
    for found in by_memory.values():
        found.sort(key=lambda placement: placement.address)
        for a, b in pairwise(found):
            if a.address + a.size > b.address and b.size and b.buffer in nodes:
                message = f"buffers `{a.buffer}` and `{b.buffer}` share bytes of {a.memory}"
                yield TCB83.at(program.span(nodes[b.buffer]), message)


def _placement_problem(
    buffer: Buffer, placement: Placement | None, sizes: dict[str, int]
) -> str | None:
    if placement is None:
        return "has no place in the image"
    if placement.memory != buffer.memory:
        return f"lies in {placement.memory}, expected {buffer.memory}"
    if placement.size != (buffer.size or 0):
        return f"has {placement.size} bytes, expected {buffer.size}"
    if placement.address % max(1, buffer.align):
        return f"lies at {placement.address:#x}, which is no multiple of {buffer.align}"
    size = sizes.get(placement.memory.partition("[")[0], 0)
    if not 0 <= placement.address <= size - placement.size:
        return f"does not lie in the {size} bytes of {placement.memory}"
    return None

"""A module with the values that stay f32 in a plan of f16, and with forms that suit them."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from nacre.compile.legalise.forms.elementwise.near_zero import exact_log1p, is_log1p_of_power
from nacre.compile.legalise.forms.mixed_precision.half_products import (
    product_in_halves,
    scale_down_product,
)
from nacre.compile.legalise.forms.mixed_precision.halves import F32Writer
from nacre.compile.legalise.forms.mixed_precision.logarithms import PRODUCTS, LogarithmChains
from nacre.compile.legalise.forms.mixed_precision.moves import move_f32
from nacre.core.module import CoreOperation, Module
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.site import RewriteSite


def widen_chains(
    module: Module,
    beyond: frozenset[int] = frozenset(),
    largest: Mapping[int, float] | None = None,
    *,
    faded: frozenset[int] = frozenset(),
    alone: frozenset[int] = frozenset(),
) -> tuple[Module, frozenset[int]]:
    """The module, wide products in forms of f16, and the values of it that stay f32.

    These are the chains around logarithms, and what f16 cannot hold: values that are `beyond`, of
    which the `largest` elements are known, and whatever is made of them and has not `faded`.
    What is made of values that are wide `alone` is not.
    """
    chains = LogarithmChains(module)
    wide = chains.wide | beyond | (_users_of(module, beyond) - faded) | alone
    if not wide and not chains.guards and not any(map(_is_log1p, module.operations)):
        return module, frozenset()
    walk = _Widener(module, chains, wide, largest or {})
    opcodes = {op.opcode for op in module.operations} - {"Input"}
    widened = apply_once(module, {opcode: [walk.take] for opcode in opcodes})
    names = {op.attributes["name"] for op in module.inputs if op.value_id in wide}
    inputs = {op.value_id for op in widened.inputs if op.attributes["name"] in names}
    return widened, frozenset(walk.wide & set(widened.by_id) | inputs)


def _is_log1p(op: CoreOperation) -> bool:
    return op.attributes.get("op") == "Log1p"


def _users_of(module: Module, values: frozenset[int]) -> set[int]:
    """The floats that are made of some values."""
    return {
        op.value_id
        for op in module.operations
        if op.type.dtype == "f32" and not values.isdisjoint(op.operands)
    }


class _Widener:
    """One walk over a module; it notes the new numbers of what is wide."""

    def __init__(
        self, module: Module, chains: LogarithmChains, wide: set[int], largest: Mapping[int, float]
    ) -> None:
        self._module, self._chains, self._largest = module, chains, largest
        self._wide = wide
        self.wide: set[int] = set()

    def take(self, site: RewriteSite) -> int | None:
        """A wide operation in the form that it has in f32; None for all others."""
        op, value = site.op, site.op.value_id
        if is_log1p_of_power(site):
            return exact_log1p(site, F32Writer(site, self._record).add)
        if value not in self._wide:
            return self._add_guard_in_f32(site) if value in self._chains.guards else None
        writer = F32Writer(
            site, self._record, needs_more_digits=self._chains.needs_more_digits(value)
        )
        if op.opcode in PRODUCTS:
            wide = self._product(writer)
        else:
            wide = move_f32(writer, is_amplitude=value in self._chains.amplitudes)
        if wide is None:
            wide = self._record(site.add(op.opcode, *site.operands, **op.attributes))
        return wide

    def _product(self, halves: F32Writer) -> int | None:
        factors = self._module.by_id[halves.site.op.value_id].operands[:2]
        if not self._wide.isdisjoint(factors):
            return product_in_halves(halves)
        return scale_down_product(halves, self._largest.get(factors[0], inf))

    def _add_guard_in_f32(self, site: RewriteSite) -> int:
        """A product in f16 to which a small number is added in f32."""
        x, weights, bias = site.operands
        made = site.add(site.op.opcode, x, weights, **site.op.attributes)
        return self._record(site.add("BinOp", made, bias, op="Add"))

    def _record(self, value: int) -> int:
        self.wide.add(value)
        return value

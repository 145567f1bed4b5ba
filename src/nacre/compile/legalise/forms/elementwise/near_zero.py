"""Functions that are near 0 what x is: log(1 + x) and e^x - 1, with all their digits there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nacre.compile.legalise.forms.elementwise.activations import curve_below_zero
from nacre.compile.legalise.size_estimates import estimate_sizes
from nacre.core.module import Module
from nacre.core.rewrite.engine import apply_once
from nacre.core.rewrite.site import RewriteSite, Rules

Add = Callable[..., int]  # as `RewriteSite.add`
_SMALL = 2.0**-7  # of f32, e^x - 1 of less has lost half of its digits


def is_log1p_of_power(site: RewriteSite) -> bool:
    """Whether an operation is log(1 + e^-|x|), as softplus has it: of what is never above 1."""
    if site.op.attributes.get("op") != "Log1p":
        return False
    power = site.maker(site.operands[0], "Exp")
    below = None if power is None else site.maker(power.operands[0], "Neg")
    return below is not None and site.maker(below.operands[0], "Unary", op="Abs") is not None


def exact_log1p(site: RewriteSite, add: Add) -> int:
    """Log(u) + (x - (u - 1)), where u is 1 + x: the second part is what u rounds off of x."""
    one, (x,) = site.literal(np.array(1.0), "f32"), site.operands
    total = add("BinOp", x, one, op="Add")
    rest = add("BinOp", x, add("BinOp", total, one, op="Sub"), op="Sub")
    return add("BinOp", add("Log", total), rest, op="Add")


def _exact(site: RewriteSite) -> int | None:
    return exact_log1p(site, site.add) if is_log1p_of_power(site) else None


def _plain(site: RewriteSite) -> int | None:
    if not is_log1p_of_power(site):
        return None
    one = site.literal(np.array(1.0), "f32")
    return site.add("Log", site.add("BinOp", site.operands[0], one, op="Add"))


# In f32; and where the result is rounded to 8 bits, which loses more than this does.
EXACT_LOG1P: Rules = {"Unary": [_exact]}
PLAIN_LOG1P: Rules = {"Unary": [_plain]}


def with_exact_curves(module: Module) -> Module:
    """The module, `Elu` and `Selu` of what is small with an e^x - 1 that has all its digits.

    It takes three steps more, and others lose nothing that counts beside what is above 0.
    """
    sizes = estimate_sizes(module)
    small = {
        op.value_id
        for op in module.operations
        if op.opcode in ("Elu", "Selu") and 0 < sizes[op.operands[0]] < _SMALL
    }
    if not small:
        return module

    def written_near_zero(site: RewriteSite) -> int | None:
        is_small = site.op.value_id in small
        return curve_below_zero(site, is_exact=True) if is_small else None

    return apply_once(module, {"Elu": [written_near_zero], "Selu": [written_near_zero]})

"""The pipeline, and how passes are run: each is verified before and after."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, InputError, InternalError
from nacre.base.stages import stage
from nacre.base.suggest import did_you_mean
from nacre.core.module import Module
from nacre.core.passes.hoist_inputs import hoist_inputs
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.exact.common_subexpressions import common_subexpressions
from nacre.core.rewrite.exact.fold_constants import fold_constants
from nacre.core.rewrite.exact.identities import identities
from nacre.core.rewrite.exact.identity_ops import identity_ops
from nacre.core.rewrite.exact.inverse_pairs import inverse_pairs
from nacre.core.rewrite.exact.operand_order import operand_order
from nacre.core.rewrite.exact.settle import settle
from nacre.core.verify import verify

_TO_HOIST = "MOD06"  # the one violation that a pass is there to mend


class Pass(Struct, frozen=True):
    """A named, pure function from a module to one with the same values."""

    name: str
    run: Callable[[Module], Module]

    @property
    def page(self) -> str:
        """What it does: a sentence, then its rewrites."""
        return inspect.getdoc(self.run) or ""

    @property
    def summary(self) -> str:
        """The sentence."""
        return self.page.split("\n", 1)[0]


PIPELINE: tuple[Pass, ...] = (
    Pass("hoist-inputs", hoist_inputs),
    Pass("operand-order", operand_order),
    Pass("fold-constants", fold_constants),
    Pass("identity-ops", identity_ops),
    Pass("inverse-pairs", inverse_pairs),
    Pass("identities", identities),
    Pass("common-subexpressions", common_subexpressions),
    Pass("settle", settle),
    Pass("dead-code", dead_code),
)

OnPass = Callable[[Pass, Module], None]


def run_passes(
    module: Module,
    passes: Sequence[Pass] = PIPELINE,
    *,
    verify_each: bool = True,
    until: str | None = None,
    on_pass: OnPass | None = None,
) -> Module:
    """Run passes in order, up to and with `until`; `on_pass` is told each one's result.

    InputError says what is wrong with a module that is not valid; that Inputs stand after
    operations is no obstacle. Without `verify_each`, only the last result is verified. What a
    module was read from is known of the result too.
    """
    chosen = passes_until(passes, until)
    is_hoisted, verified, placed = not require_sound(module), module, module
    for index, one in enumerate(chosen):
        with _rewriting(index, len(chosen)):
            result = one.run(module)
        if result is not module and result.labels is None and module.labels is not None:
            result = replace(result, labels=module.labels)
        if result is not verified and (verify_each or index == len(chosen) - 1):
            errors = _errors(result)
            _require_valid(one, errors, is_hoisted)
            is_hoisted, verified = not errors, result
        module = result
        placed = placed if result.source_spans is None else result
        if on_pass is not None:
            on_pass(one, module)
    return module.placed_as(placed)


def require_sound(module: Module) -> list[Diagnostic]:
    """InputError with what is wrong with a module; returns what passes mend: late Inputs."""
    errors = _errors(module)
    if any(d.code != _TO_HOIST for d in errors):
        raise InputError(errors)
    return errors


def _rewriting(done: int, total: int) -> AbstractContextManager[None]:
    """A pass as whoever waits sees it: their names say nothing to users of models."""
    return stage("simplifying the model", "rewrites", lambda: (done, total))


def passes_until(passes: Sequence[Pass], until: str | None) -> tuple[Pass, ...]:
    """The passes up to and with the one of that name; ValueError where there is none."""
    if until is None:
        return tuple(passes)
    names = [one.name for one in passes]
    if until not in names:
        hint = did_you_mean(str(until), names)
        known = ", ".join(f"`{name}`" for name in names)
        raise ValueError(f"no pass `{until}`; {hint or 'expected one of ' + known}")
    return tuple(passes[: names.index(until) + 1])


def pipeline_text(passes: Sequence[Pass] = PIPELINE) -> str:
    """The passes, a line each: name and what it does."""
    width = max((len(one.name) for one in passes), default=0)
    return "".join(f"{one.name:{width}}  {one.summary}\n" for one in passes)


def _errors(module: Module) -> list[Diagnostic]:
    return [d for d in verify(module, "nacre-1") if d.severity == "error"]


def _require_valid(one: Pass, errors: Sequence[Diagnostic], was_hoisted: bool) -> None:
    """A module that was valid is valid after a pass; otherwise the pass is wrong."""
    broken = [d for d in errors if was_hoisted or d.code != _TO_HOIST]
    if broken:
        first = broken[0]
        raise InternalError(
            f"pass `{one.name}` broke the module: {first.code} {first.message}"
            f" ({len(broken)} violations)"
        )

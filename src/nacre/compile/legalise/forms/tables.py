"""Which forms each operation has, in the order in which they are tried."""

from __future__ import annotations

from dataclasses import replace

from nacre.compile.legalise.forms.elementwise.activations import ACTIVATION_FORMS, GATE_FORMS
from nacre.compile.legalise.forms.elementwise.columns import COLUMN_FORMS
from nacre.compile.legalise.forms.elementwise.fractions import FRACTION_FORMS
from nacre.compile.legalise.forms.elementwise.logic import LOGIC_FORMS
from nacre.compile.legalise.forms.elementwise.norms import BATCH_STATISTICS, NORM_FORMS
from nacre.compile.legalise.forms.elementwise.reductions import REDUCTION_FORMS
from nacre.compile.legalise.forms.elementwise.rowwise import ROW_FORMS
from nacre.compile.legalise.forms.movement.gather import GATHER_FORMS
from nacre.compile.legalise.forms.movement.large import LARGE_FORMS
from nacre.compile.legalise.forms.movement.moves import EARLY_MOVES, LATE_MOVES, TRANSPOSE_FORMS
from nacre.compile.legalise.forms.movement.resize import RESIZE_FORMS
from nacre.compile.legalise.forms.movement.transpose import EARLY_TURNED, TURNED_FORMS
from nacre.compile.legalise.forms.products.attention import ATTENTION_FORMS
from nacre.compile.legalise.forms.products.dynamic import DYNAMIC_FORMS
from nacre.compile.legalise.forms.products.einsum import EINSUM_FORMS
from nacre.compile.legalise.forms.products.onehot import ONE_HOT_FORMS
from nacre.compile.legalise.forms.products.products import PRODUCT_FORMS
from nacre.compile.legalise.forms.quantised.quantized import LATE_QUANTIZED, QUANTIZED_FORMS
from nacre.compile.legalise.forms.windows.channels import CHANNEL_FORMS
from nacre.compile.legalise.forms.windows.scaling import SCALING_FORMS
from nacre.compile.legalise.forms.windows.shuffles import CHANNEL_ORDER, SHUFFLE_FORMS
from nacre.compile.legalise.forms.windows.transposed import TRANSPOSED_FORMS
from nacre.compile.legalise.forms.windows.windows import EARLY_WINDOWS, LATE_WINDOWS
from nacre.compile.legalise.lowerings import is_from_outside
from nacre.core.module import Module
from nacre.core.rewrite.dead_code import dead_code
from nacre.core.rewrite.engine import simplify
from nacre.core.rewrite.exact.settle import IDLE
from nacre.core.rewrite.inexact.fold_known import FOLD_KNOWN
from nacre.core.rewrite.inexact.transposes import SINKING
from nacre.core.rewrite.labels import complete_labels
from nacre.core.rewrite.recover.activations import ACTIVATIONS
from nacre.core.rewrite.recover.norms import NORMS_OF_HALVES, SCALES_AND_BIASES
from nacre.core.rewrite.recover.reductions import KEPT_AXES, REDUCTIONS
from nacre.core.rewrite.recover.roots import ROOTS
from nacre.core.rewrite.site import Rewrite, RewriteSite, Rules, merge_rules


def remove_idle(module: Module) -> Module:
    """The module without operations that do nothing or undo each other.

    That is the canonical form but for what looks at every constant: it is done after each table.
    """
    made = simplify(module, IDLE)
    return complete_labels(replace(dead_code(made), labels=made.labels))


def merge_guarded(folding: Rules, *tables: Rules) -> Rules:
    """Several tables as one, of which only the first touches what has a form from outside."""
    kept = {
        opcode: [_unless_outside(rewrite) for rewrite in rewrites]
        for opcode, rewrites in merge_rules(*tables).items()
    }
    return merge_rules(folding, kept)


def _unless_outside(rewrite: Rewrite) -> Rewrite:
    def applied(site: RewriteSite) -> int | None:
        return None if is_from_outside(site.op) else rewrite(site)

    return applied


# Operations of the first profile under the names that everything else knows.
FIRST: Rules = merge_guarded(
    FOLD_KNOWN,
    DYNAMIC_FORMS,
    QUANTIZED_FORMS,
    KEPT_AXES,
    {"Conv2d": EARLY_WINDOWS["Conv2d"], "Dot": PRODUCT_FORMS["Dot"]},
)
# Before the layout: two axes for every window, channels last between transpositions.
EARLY: Rules = merge_guarded(
    FOLD_KNOWN,
    FRACTION_FORMS,
    EARLY_WINDOWS,
    EARLY_MOVES,
    EINSUM_FORMS,
    REDUCTIONS,
    ACTIVATIONS,
    GATE_FORMS,
    SCALES_AND_BIASES,
    NORMS_OF_HALVES,
    BATCH_STATISTICS,
    ONE_HOT_FORMS,
)
# Transpositions sink past what they can while operations still have their names.
SINK: Rules = merge_rules(merge_guarded(FOLD_KNOWN, ROOTS), SINKING)
# What cannot sink is moved where it moves least.
TURN: Rules = merge_guarded(FOLD_KNOWN, EARLY_TURNED, CHANNEL_ORDER)
# What is left, in operations of the device.
LATE: Rules = merge_guarded(
    FOLD_KNOWN,
    SCALING_FORMS,
    CHANNEL_FORMS,
    ATTENTION_FORMS,
    GATHER_FORMS,
    ACTIVATION_FORMS,
    LATE_WINDOWS,
    ONE_HOT_FORMS,
    TRANSPOSED_FORMS,
    RESIZE_FORMS,
    REDUCTION_FORMS,
    NORM_FORMS,
    PRODUCT_FORMS,
    LATE_MOVES,
    LOGIC_FORMS,
    LATE_QUANTIZED,
    LARGE_FORMS,
    COLUMN_FORMS,
    ROW_FORMS,
)
# Transpositions that the forms have added sink once more.
_SETTLED = frozenset({"Softmax", "LogSoftmax", "CumSum", "Resize"})
SETTLE: Rules = merge_rules(
    FOLD_KNOWN,
    SHUFFLE_FORMS,
    {name: forms for name, forms in SINKING.items() if name not in _SETTLED},
    TURNED_FORMS,
)
LAST: Rules = merge_rules(FOLD_KNOWN, TRANSPOSE_FORMS)

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
from nacre.compile.legalise.forms.movement.moves import (
    MOVE_AND_MAP_FORMS,
    MOVE_FORMS,
    TRANSPOSE_FORMS,
)
from nacre.compile.legalise.forms.movement.resize import RESIZE_FORMS
from nacre.compile.legalise.forms.movement.transpose import (
    TRANSPOSES_BEFORE_ENLARGING,
    TRANSPOSES_BEFORE_RESIZE,
)
from nacre.compile.legalise.forms.products.attention import ATTENTION_FORMS
from nacre.compile.legalise.forms.products.dynamic import DYNAMIC_FORMS
from nacre.compile.legalise.forms.products.einsum import EINSUM_FORMS
from nacre.compile.legalise.forms.products.onehot import ONE_HOT_FORMS
from nacre.compile.legalise.forms.products.products import PRODUCT_FORMS
from nacre.compile.legalise.forms.quantised.quantized import QUANTIZED_FORMS, UNSIGNED_RESULTS
from nacre.compile.legalise.forms.windows.channels import CHANNEL_FORMS
from nacre.compile.legalise.forms.windows.poolings import DEVICE_POOLINGS
from nacre.compile.legalise.forms.windows.scaling import SCALING_FORMS
from nacre.compile.legalise.forms.windows.shuffles import CHANNEL_ORDER, SHUFFLE_FORMS
from nacre.compile.legalise.forms.windows.transposed import TRANSPOSED_FORMS
from nacre.compile.legalise.forms.windows.windows import DEVICE_WINDOWS, WINDOWS_OVER_TWO_AXES
from nacre.compile.legalise.lowerings import has_registered_form
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
        opcode: [_unless_registered(rewrite) for rewrite in rewrites]
        for opcode, rewrites in merge_rules(*tables).items()
    }
    return merge_rules(folding, kept)


def _unless_registered(rewrite: Rewrite) -> Rewrite:
    def applied(site: RewriteSite) -> int | None:
        return None if has_registered_form(site.op) else rewrite(site)

    return applied


# Operations of Core v1 under the names that everything else knows; stored integers as floats.
UNIFY_NAMES: Rules = merge_guarded(
    FOLD_KNOWN,
    DYNAMIC_FORMS,
    QUANTIZED_FORMS,
    KEPT_AXES,
    {"Conv2d": WINDOWS_OVER_TWO_AXES["Conv2d"], "Dot": PRODUCT_FORMS["Dot"]},
)
# Before the layout: what models spell out put back; two axes for every window, channels last
# between transpositions.
GENERAL_FORMS: Rules = merge_guarded(
    FOLD_KNOWN,
    FRACTION_FORMS,
    WINDOWS_OVER_TWO_AXES,
    MOVE_FORMS,
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
SINK_TRANSPOSES: Rules = merge_rules(merge_guarded(FOLD_KNOWN, ROOTS), SINKING)
# What cannot sink is moved where it moves least.
PLACE_TRANSPOSES: Rules = merge_guarded(FOLD_KNOWN, TRANSPOSES_BEFORE_ENLARGING, CHANNEL_ORDER)
# What is left, in operations of the device.
DEVICE_FORMS: Rules = merge_guarded(
    FOLD_KNOWN,
    SCALING_FORMS,
    CHANNEL_FORMS,
    ATTENTION_FORMS,
    GATHER_FORMS,
    ACTIVATION_FORMS,
    DEVICE_WINDOWS,
    DEVICE_POOLINGS,
    ONE_HOT_FORMS,
    TRANSPOSED_FORMS,
    RESIZE_FORMS,
    REDUCTION_FORMS,
    NORM_FORMS,
    PRODUCT_FORMS,
    MOVE_AND_MAP_FORMS,
    LOGIC_FORMS,
    UNSIGNED_RESULTS,
    LARGE_FORMS,
    COLUMN_FORMS,
    ROW_FORMS,
)
# Transpositions that the forms have added sink once more.
_NOT_SUNK_TWICE = frozenset({"Softmax", "LogSoftmax", "CumSum", "Resize"})
SINK_ADDED_TRANSPOSES: Rules = merge_rules(
    FOLD_KNOWN,
    SHUFFLE_FORMS,
    {name: forms for name, forms in SINKING.items() if name not in _NOT_SUNK_TWICE},
    TRANSPOSES_BEFORE_RESIZE,
)
# Transpositions that are left: each exchanges two runs of axes.
SPLIT_TRANSPOSES: Rules = merge_rules(FOLD_KNOWN, TRANSPOSE_FORMS)

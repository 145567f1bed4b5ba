"""Every rule about programs, devices and type families, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from nacre.base.diagnostics import Diagnostic
from nacre.base.rules import checks_in
from nacre.nem.checks.facts import ProgramFacts
from nacre.nem.checks.rules.buffers import aliasing, buffers, extents, initialization, region_types
from nacre.nem.checks.rules.devices import configurations, figures
from nacre.nem.checks.rules.families import attributes, declarations
from nacre.nem.checks.rules.ordering import copies, hazards, import_hazards, loops, tokens
from nacre.nem.checks.rules.placement import (
    compute_levels,
    decompression,
    decorators,
    placement,
    promises,
    resource_targets,
    resources,
)
from nacre.nem.checks.rules.quantisation import quant_descriptors, quant_operands, quant_tasks
from nacre.nem.checks.rules.signatures import (
    signature_attributes,
    signature_axes,
    signature_operands,
    signature_shapes,
    signature_views,
    signature_windows,
)
from nacre.nem.checks.rules.types import type_domains, type_elementwise, type_matching

# Rules that look at statements one by one. Some functions report what the readers declare: that
# an expression has no value.
STATEMENT_RULES: tuple[Callable[[ProgramFacts], Iterator[Diagnostic]], ...] = (
    *checks_in(buffers),
    extents.regions_have_values,
    *checks_in(extents, region_types),
    loops.loop_bounds_have_values,
    *checks_in(loops, decorators, resource_targets),
    resources.resource_indices_have_values,
    *checks_in(resources, promises),
    placement.engine_indices_have_values,
    *checks_in(placement, compute_levels),
    *checks_in(signature_operands, signature_attributes, signature_shapes),
    *checks_in(signature_windows, signature_views, signature_axes),
    *checks_in(type_matching, type_elementwise, type_domains),
    *checks_in(quant_descriptors, quant_operands, quant_tasks),
    *checks_in(copies, aliasing, decompression),
)
# Rules that need to know what orders what: asked only when no statement and no token is missing,
# for otherwise they would repeat that mistake in other words.
ORDER_RULES = checks_in(tokens, hazards, import_hazards, initialization)

DEVICE_RULES = checks_in(configurations, figures)
FAMILY_RULES = checks_in(declarations, attributes)

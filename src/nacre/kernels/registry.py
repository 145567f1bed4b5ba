"""Every primitive by its name: the opcodes of NEM, and `core.NAME` for the ops of Core IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from nacre.kernels.call import Primitive
from nacre.kernels.conversion import CONVERSION
from nacre.kernels.convolution import CONVOLUTION
from nacre.kernels.core_ops import CORE_OPS
from nacre.kernels.elementwise import ELEMENTWISE
from nacre.kernels.graph_convolution import GRAPH_CONVOLUTION
from nacre.kernels.graph_data import GRAPH_DATA
from nacre.kernels.graph_elementwise import GRAPH_ELEMENTWISE
from nacre.kernels.graph_linear import GRAPH_LINEAR
from nacre.kernels.graph_normalization import GRAPH_NORMALIZATION
from nacre.kernels.graph_pooling import GRAPH_POOLING
from nacre.kernels.graph_quantized import GRAPH_QUANTIZED
from nacre.kernels.graph_reductions import GRAPH_REDUCTIONS
from nacre.kernels.graph_resize import GRAPH_RESIZE
from nacre.kernels.graph_scatter import GRAPH_SCATTER
from nacre.kernels.linear import LINEAR
from nacre.kernels.normalization import NORMALIZATION
from nacre.kernels.pooling import POOLING
from nacre.kernels.quantization import through_reals
from nacre.kernels.reductions import REDUCTIONS
from nacre.kernels.views import VIEWS

_ROWS = (
    *LINEAR,
    *CONVOLUTION,
    *ELEMENTWISE,
    *POOLING,
    *VIEWS,
    *REDUCTIONS,
    # Softmax and norms have no meaning in integers but the real values that `quant` gives them.
    *(replace(row, bind=through_reals(row.bind)) for row in NORMALIZATION),
    *CONVERSION,
    *CORE_OPS,
    *GRAPH_ELEMENTWISE,
    *GRAPH_REDUCTIONS,
    *GRAPH_NORMALIZATION,
    *GRAPH_LINEAR,
    *GRAPH_CONVOLUTION,
    *GRAPH_POOLING,
    *GRAPH_DATA,
    *GRAPH_SCATTER,
    *GRAPH_RESIZE,
    *GRAPH_QUANTIZED,
)

PRIMITIVES: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _ROWS})

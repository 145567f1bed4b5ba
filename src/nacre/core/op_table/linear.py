"""Operations of `nacre-1` that are sums of products, convolutions aside.

`Attention` is q [.., L, E], k [.., S, E] and v [.., S, V], the dimensions before broadcast, and a
mask that broadcasts to [.., L, S]. `causal` hides key j from query i where j > i. A query that may
look at no key gives zeros.
"""

from __future__ import annotations

from nacre.core.specs import optional, required, row

LINEAR = (
    row("Linear", "rows by weights [out, in], plus a bias", "input:number weight:same bias?:same",
        aten="linear.default"),
    row("Einsum", "sums of products over named axes", "inputs*:number",
        required("equation", "string"), aten="einsum.default"),
    row("Attention",
        "softmax(q k' * scale + mask) v; a bool mask says what takes part, 0 scales by 1 / sqrt(E)",
        "q:float k:same v:same mask?:mask", optional("scale", "float", 0.0),
        optional("causal", "bool", False), aten="scaled_dot_product_attention.default"),
)  # fmt: skip

"""Rewrites of modules: one engine, and the rules that it applies.

`exact/` keeps every bit and the numbers of values: the canonical form is made of it. `inexact/`
and `recover/` may change the last bits of floats, and number values anew: they are for inference
and for the compiler. A rule is a function from a `RewriteSite` to the value that stands there
instead; a table says at which opcodes it is tried.
"""

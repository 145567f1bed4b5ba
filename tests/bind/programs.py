"""Small programs whose order is worth a look, and how they are read."""

from __future__ import annotations

import re

from nacre.base.source import Source
from nacre.nem.checks.engine import CheckOptions, check_source
from nacre.nem.model.devices import Device
from nacre.nem.plan.plan import Plan

HEAD = """include "npm_mid.nem"
device npm_mid
program p:
buffer D : DDR (size=65536)
buffer A : L1[0] (size=65536)
buffer B : L1[1] (size=65536)
"""

PROGRAMS = {
    "flat": """
a = copy A 0
b = copy A 64 deps a
c = copy A 128
wait(b, c)
d = copy A 192
""",
    "loop": """
w = copy A 4096
loop i in [0..6] @max_in_flight(3):
x = copy A (i mod 3) * 64
y = copy A 1024 + (i mod 3) * 64 deps x, w
endloop
z = copy A 8192
""",
    "alike": """
w = copy A 4096
loop i in [0..2] @max_in_flight(2):
x = copy A (i mod 2) * 64
y = copy A 1024 + (i mod 2) * 64 deps x, w
endloop
v = copy A 4160
loop j in [0..2] @max_in_flight(2):
p = copy A 2048 + (j mod 2) * 64
q = copy A 3072 + (j mod 2) * 64 deps p, v
endloop
loop k in [0..1]:
r = copy A 5120
s = copy A 5184 deps r, w
endloop
z = copy A 4224
loop m in [0..1]:
loop n in [0..1]:
t = copy A 6144 + m * 64 deps z
endloop
loop o in [0..1]:
u = copy A 7168 + m * 64 deps z
endloop
endloop
""",
    "nest": """
loop i in [0..4] @max_in_flight(2):
x = copy A (i mod 2) * 64
loop j in [0..i + 1] @max_in_flight(2):
y = copy A 1024 + (i mod 2) * 256 + (j mod 2) * 64 deps x
endloop
u = copy A 2048 + (i mod 2) * 64
wait(u)
loop k in [0..2]:
v = copy A 3072 + (i mod 2) * 64
endloop
endloop
loop m in [0..3] @max_in_flight(4):
q = copy A 4096 + m * 64
endloop
""",
    "engines": """
loop i in [0..3] @max_in_flight(2):
x = copy A (i mod 2) * 64
y = copy B (i mod 2) * 64 deps x
loop j in [0..2] @max_in_flight(2):
z = copy B 1024 + (i mod 2) * 128 + (j mod 2) * 64
endloop
loop k in [0..2] @max_in_flight(3):
r = copy A 1024 + (i mod 2) * 256 + (k mod 3) * 64
endloop
endloop
e = copy B 9000
f = copy A 9000
""",
}
_COPY = re.compile(r"(?m)^(\w+) = copy (\w) (.*?)(?: deps (.*))?$")


def program(text: str) -> str:
    """A text whose lines `x = copy A 0 deps y` are transfers of 64 bytes into a buffer."""

    def transfer(found: re.Match[str]) -> str:
        name, buffer, offset, deps = found.groups()
        waits = f", deps=[{deps}]" if deps else ""
        source = "src=region(D, 0, 64)"
        return f"{name} = transfer.async(dst=region({buffer}, {offset}, 64), {source}{waits})"

    return HEAD + _COPY.sub(transfer, text)


def checked(text: str) -> tuple[Plan, Device]:
    found = check_source(Source("p.nem", program(text)), CheckOptions())
    errors = [d for d in found.diagnostics if d.severity == "error"]
    assert not errors, errors
    assert found.facts is not None
    return found.facts.plan, found.device

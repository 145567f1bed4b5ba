"""Random programs, bound in three ways: `python -m tests.bind.proofs --count 3000 --seed 1`.

Each is bound to ideal hardware, to the device's own and to a smaller target. Every image is read as
it was written, proved, runs to its end in random orders with the bytes of NEM's machine, and is not
stuck in time; on ideal hardware it takes NEM's cycles. With `--interleavings 100` the examples are
run in so many orders.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from nacre.base.diagnostics import InputError
from nacre.bind.pipeline import bind_plan
from nacre.bind.request import BindOptions
from nacre.bind.uarch.builtin import load_uarch
from nacre.bind.uarch.reader import Uarch
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import time_plan
from nacre.tcb.binary.encoding import encode
from nacre.tcb.files import read_image
from nacre.tcb.image import Image
from nacre.tcb.machine.run import run_image
from nacre.tcb.machine.timing import time_image
from nacre.tcbcheck.verify import verify_image
from tests.nem.plan.fusing_sketches import INPUTS, draw_body
from tests.nem.plan.mutants import pipeline
from tests.nem.run.programs import Items, contents, runnable, stored, text
from tests.tcb.machine.bound import (
    EXAMPLES,
    Contents,
    example,
    loaded,
    nem_session,
    random_contents,
)

ROOT = Path(__file__).resolve().parents[2]
SMALL = str(ROOT / "examples/uarch/small_npm4k.uarch")
DDR_BYTES = 1 << 24


def uarchs(device: str) -> list[Uarch]:
    """Ideal hardware, the device's own, and the smaller target."""
    return [load_uarch(name, device) for name in ("ideal", None, SMALL)]


def require_all(
    program: LoadedProgram, inputs: Contents, orders: range, outcomes: Counter[str]
) -> None:
    """Bind a program in all ways; AssertionError where one of the properties does not hold."""
    expected = stored(nem_session(program, inputs))
    for uarch in uarchs(program.device.name):
        options = BindOptions(uarch, may_serialise=True, ddr_bytes=DDR_BYTES)
        try:
            image = bind_plan(program.plan, program.name, program.device, options).image
        except InputError as error:
            (code,) = {finding.code for finding in error.diagnostics}
            if code not in ("BND01", "BND04"):
                raise
            outcomes[f"{uarch.name}: refused with {code}"] += 1
            continue
        require_image(program, image, inputs, expected, orders)
        blocks = [block for stream in image.streams for block, _ in stream.blocks()]
        chained = ", chained" if any(block.is_chained for block in blocks) else ""
        outcomes[f"{uarch.name}: proved{chained}"] += 1


def require_image(
    program: LoadedProgram, image: Image, inputs: Contents, expected: Contents, orders: range
) -> None:
    """The five properties of one image."""
    assert read_image(encode(image), "p.tcb") == image  # what is written is judged and read
    findings = verify_image(program.plan, image)
    assert not findings, findings[0]
    timing = time_image(image, compile=False)
    assert not timing.is_stuck, timing.diagnostics
    if not image.machine.figures:
        assert timing.cycles == time_plan(program.plan, program.device).cycles
    blocks = [block for stream in image.streams for block, _ in stream.blocks()]
    # What is streamed is never written: L1 may differ, what leaves it may not.
    is_streamed = any(block.is_chained or block.format != "raw" for block in blocks)
    names = [port.name for port in image.ports] if is_streamed else list(expected)
    for order in (None, *orders):
        result = run_image(image, inputs, seed=order)
        assert result.status == "completed", result.diagnostics
        for name in names:
            assert result.read(name) == expected[name], (name, order)


def random_programs(count: int, seed: int) -> Iterator[tuple[str, Contents]]:
    """Texts with what their buffers hold: pipelines with rings, chains, and arbitrary nests."""
    rng = random.Random(seed)
    nests: list[Items] = []

    @seeded(seed)
    @settings(max_examples=count // 3 + 1, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(runnable())
    def collect(items: Items) -> None:
        nests.append(items)

    collect()
    for number in range(count):
        kind = number % 3
        if kind == 0:
            yield text(pipeline(rng)), contents(rng.randrange(1 << 32))
        elif kind == 1:
            inputs = {name: rng.randbytes(size) for name, size in INPUTS.items()}
            yield draw_body(rng).text, inputs
        elif nests:
            yield text(nests.pop()), contents(rng.randrange(1 << 32))


def try_programs(count: int, seed: int) -> Counter[str]:
    """Bind so many programs; the text of one that fails is kept."""
    outcomes: Counter[str] = Counter()
    for number, (source, inputs) in enumerate(random_programs(count, seed)):
        try:
            require_all(loaded(source), inputs, range(number, number + 3), outcomes)
        except BaseException:
            Path(f"program-{seed}-{number}.nem").write_text(source)
            raise
        outcomes["programs"] += 1
    return outcomes


def try_examples(interleavings: int) -> Counter[str]:
    """Run every example that takes less than a second in so many orders."""
    outcomes: Counter[str] = Counter()
    for path in EXAMPLES:
        program = example(path)
        inputs = random_contents(program, 3)
        begun = process_time()
        nem_session(program, inputs)
        if process_time() - begun > 1:
            outcomes["examples that take too long"] += 1
            continue
        require_all(program, inputs, range(interleavings), outcomes)
        outcomes["examples"] += 1
    return outcomes


def main() -> None:
    """Try programs, or the examples, and say what became of them."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--count", type=int, default=300)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--interleavings", type=int, default=0)
    options = reader.parse_args()
    begun = process_time()
    if options.interleavings:
        outcomes = try_examples(options.interleavings)
    else:
        outcomes = try_programs(options.count, options.seed)
    told = [f"{process_time() - begun:.0f} s, nothing wrong"]
    told += [f"{count:7,} {found}" for found, count in sorted(outcomes.items())]
    sys.stdout.write("\n".join(told) + "\n")


if __name__ == "__main__":
    main()

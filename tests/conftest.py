"""What all tests share: golden files, and how hard hypothesis tries."""

from __future__ import annotations

import gc
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nacre.base.collection import no_collection
from tests.detection_names import define_detections
from tests.effort import PROFILE, commit_number, leave_to_full_tier
from tests.processor_time import ProcessorTime

pytest_plugins = ["tests.forked_workers"]
TESTS = Path(__file__).parent
os.environ["NACRE_CACHE"] = ""  # every plan is made anew, here and in what tests start

# A shell that starts the tests in the background makes them, and what they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A loaded machine draws examples slowly; that says nothing about the code under test.
settings.register_profile(
    "fast",
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "full", max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz", max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(PROFILE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
    parser.addoption("--processor-times", type=Path, metavar="FILE", help="a row a test, as CSV")


def pytest_configure(config: pytest.Config) -> None:
    define_detections()  # before anything imports transformers, which looks for torchvision
    config.pluginmanager.register(ProcessorTime(config.getoption("--processor-times")))
    # A failure must come again: the examples of the fast profile follow from the commit.
    if PROFILE == "fast" and config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(commit_number())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tens of thousands of tests are made, and stay: nothing of them is ever garbage."""
    with no_collection():
        collected = yield
    gc.freeze()
    return collected


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_to_full_tier(items)


@pytest.fixture(autouse=True)
def weights_of_torch() -> None:
    """Give a test the same weights whatever ran before; only the first one has to import torch."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare a text with the golden file of this test: `golden(text)`, `golden(text, ".nem")`."""

    def check(actual: str, suffix: str = ".txt") -> None:
        folder = TESTS / "golden" / request.path.relative_to(TESTS).with_suffix("")
        path = folder / (re.sub(r"[^\w.-]+", "-", request.node.name).strip("-") + suffix)
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(actual.encode())
        command = f"python -m pytest --update-golden {shlex.quote(request.node.nodeid)}"
        if not path.exists():
            pytest.fail(f"no golden file {path}; review this text, then run\n  {command}\n{actual}")
        assert actual == path.read_bytes().decode(), f"if the new text is right, run\n  {command}"

    return check

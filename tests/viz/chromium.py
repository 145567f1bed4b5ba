"""A Chromium that is told what to do through a pipe: no other package is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe")
_WANTED = (3, 4)  # it reads commands from the one and answers to the other
_PATIENCE = 30  # seconds until a page is ready


class Browser:
    """One Chromium process."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        theirs, self._output = os.pipe()
        self._input, answers = os.pipe()
        # Above those that it wants, so that none is in the way of another.
        high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20) for descriptor in (theirs, answers)]
        arguments = [CHROMIUM, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]

        def connect() -> None:
            for descriptor, wanted in zip(high, _WANTED, strict=True):
                os.dup2(descriptor, wanted)

        self._process = subprocess.Popen(
            arguments,
            pass_fds=_WANTED,
            preexec_fn=connect,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for descriptor in (theirs, answers, *high):
            os.close(descriptor)
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self._output)  # it ends where nobody speaks to it any more
        os.close(self._input)
        self._process.terminate()
        self._process.wait(30)

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict[str, Any]:
        """Have something done, and wait for the answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._output, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return dict(found["result"])
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._input, 1 << 20)
            assert part, "the browser is gone"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(text))

    def open(self, path: Path, *, width: int = 1400, scheme: str = "light") -> Page:
        """Open a page and wait until it says that it is ready."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target, path)
        page.call("Page.enable")
        page.call("Runtime.enable")
        page.call("Network.enable")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        page.call("Emulation.setEmulatedMedia", features=media)
        page.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + _PATIENCE
        while not page.evaluate("document.documentElement?.dataset.ready ?? ''"):
            assert time.monotonic() < deadline, page.trouble
            time.sleep(0.02)
        page.settle()
        return page


class Page:
    """A page in it."""

    def __init__(self, browser: Browser, session: str, target: str, path: Path) -> None:
        self._browser, self._session, self._target = browser, session, target
        self._path = path

    def close(self) -> None:
        """Let it go."""
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever the script gives
        """What a script gives, once it is there."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def settle(self) -> None:
        """Until the next frame is drawn."""
        self.evaluate("new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))")

    def text(self, selector: str) -> str:
        """What is read there."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def count(self, selector: str) -> int:
        return int(self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length"))

    def click(self, x: float, y: float) -> None:
        place = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **place)
        self.settle()

    def move(self, x: float, y: float) -> None:
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def press(self, key: str) -> None:
        """A key, as `n` or `Enter`."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def picture(self, path: Path) -> None:
        """The whole page as a picture."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    @property
    def trouble(self) -> list[str]:
        """What complained, or left the machine."""
        found = []
        for event in self._browser.events:
            kind, about = event.get("method"), event.get("params", {})
            if event.get("sessionId") != self._session:
                continue
            if kind in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded",
                        "Page.javascriptDialogOpening"):  # fmt: skip
                found.append(json.dumps(about))
            url = about.get("request", {}).get("url", self._path.as_uri())
            if kind == "Network.requestWillBeSent" and url != self._path.as_uri():
                found.append(url)
        return found

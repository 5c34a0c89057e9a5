"""A headless Chromium for tests, controlled through two pipes by the DevTools protocol; no driver or package is needed."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: How long a browser may take to answer on a busy machine, in seconds.
PATIENCE = 120.0


def find() -> str | None:
    """Return the path of a browser on this machine, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """A page of a browser. `events` contains all events that it has reported."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._browser.send(method, parameters, session=self._session, events=self.events)

    def open(self, address: str) -> None:
        """Open an address and wait until it has loaded."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.send("Page.navigate", url=address)
        self.wait("Page.loadEventFired")

    def wait(self, method: str) -> None:
        """Wait for an event."""
        while not any(event["method"] == method for event in self.events):
            self.events.append(self._browser.receive())

    def ask(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def look(self, *, dark: bool = False, media: str = "screen", width: int = 1000) -> None:
        """Set the colour scheme, the medium and the width of the window."""
        scheme = "dark" if dark else "light"
        self.send(
            "Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def picture(self) -> bytes:
        """Return a picture of the whole page as PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def pdf(self) -> bytes:
        """Return the printed page as PDF."""
        return base64.b64decode(self.send("Page.printToPDF", preferCSSPageSize=True)["data"])


class Browser:
    """A running browser."""

    def __init__(self, program: str, folder: str) -> None:
        # The browser reads commands from descriptor 3 and answers on 4, each message ended by a zero byte.
        first, ours_out = os.pipe()
        ours_in, second = os.pipe()
        # The descriptors get high numbers, so that moving one to its place does not close the other.
        theirs_in, theirs_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 64) for end in (first, second))
        os.close(first)
        os.close(second)
        arguments = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        command = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, "bash", *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb", buffering=0)
        os.set_blocking(ours_in, False)
        self._rest, self._count = b"", 0

    def tab(self) -> Tab:
        """Open a new page."""
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Tab(self, session)

    def send(
        self,
        method: str,
        parameters: dict[str, Any],
        session: str | None = None,
        events: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Send a command and return its answer; other messages are appended to `events`."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])
            if events is not None and "method" in answer:
                events.append(answer)

    def receive(self) -> dict[str, Any]:
        """Return the next message."""
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            part = self._in.read(1 << 20)
            if part:
                self._rest += part
                continue
            assert self._process.poll() is None, "the browser has ended"
            assert time.monotonic() < deadline, "the browser does not answer"
            time.sleep(0.005)
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(AssertionError, OSError):
            self.send("Browser.close", {})
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._in.close()
        self._out.close()


@contextlib.contextmanager
def running(program: str) -> Iterator[Browser]:
    """Run a browser with a temporary profile of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, str(Path(folder)))
        try:
            yield browser
        finally:
            browser.close()

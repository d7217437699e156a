"""Chromium, driven over a pipe by its own protocol: nothing to install but the browser.

The protocol is JSON, one message after another, each ended by a zero byte; Chromium reads from
descriptor 3 and writes to descriptor 4. https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
_PATIENCE = 60.0  # seconds for an answer, on a busy machine


def executable() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A browser and its one end of the two pipes."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._unread = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The answer to one command; events that come before it are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._last:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait(self, event: str, session: str, **matching: Any) -> None:
        """Until this event has come, with these parameters."""

        def wanted(seen: dict[str, Any]) -> bool:
            return self._is(seen, event, session) and matching.items() <= seen["params"].items()

        while not any(wanted(seen) for seen in self.events):
            self.events.append(self._read())

    def take(self, event: str, session: str) -> list[dict[str, Any]]:
        """What events of this name have said; they are forgotten."""
        taken = [seen["params"] for seen in self.events if self._is(seen, event, session)]
        self.events = [seen for seen in self.events if not self._is(seen, event, session)]
        return taken

    @staticmethod
    def _is(message: dict[str, Any], event: str, session: str) -> bool:
        return message.get("method") == event and message.get("sessionId") == session

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._unread:
            if not select.select([self._reader], [], [], end - time.monotonic())[0]:
                raise TimeoutError(f"Chromium has been silent for {_PATIENCE:g} seconds")
            part = os.read(self._reader, 1 << 20)
            if not part:
                raise ConnectionError("Chromium has ended")
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)


@contextlib.contextmanager
def browser(program: str) -> Iterator[Browser]:
    to_read, writer = os.pipe()
    reader, to_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = _start([program, *_FLAGS, f"--user-data-dir={profile}"], to_read, to_write)
        os.close(to_read)
        os.close(to_write)
        started = Browser(reader, writer)
        try:
            yield started
            started.call("Browser.close")
        except BaseException:
            os.kill(process, signal.SIGKILL)
            raise
        finally:
            os.waitpid(process, 0)
            os.close(reader)
            os.close(writer)


def _start(command: list[str], to_read: int, to_write: int) -> int:
    """subprocess cannot choose the numbers of descriptors without code between fork and exec."""
    nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    pipes = [(os.POSIX_SPAWN_DUP2, to_read, 3), (os.POSIX_SPAWN_DUP2, to_write, 4)]
    return os.posix_spawn(command[0], command, os.environ, file_actions=[*nothing, *pipes])


class Page:
    """One tab."""

    def __init__(self, browser: Browser, *, width: int = 1100, height: int = 900) -> None:
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.resize(width, height)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def resize(self, width: int, height: int = 900) -> None:
        size = {"width": width, "height": height}
        self.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)

    def colours(self, scheme: str) -> None:
        """What the system prefers, "light" or "dark"."""
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[preference])

    def open(self, url: str) -> None:
        """Anew, even if only what follows # differs."""
        for address in ("about:blank", url):
            loader = self.call("Page.navigate", url=address)["loaderId"]
            event = {"loaderId": loader, "name": "load"}
            self._browser.wait("Page.lifecycleEvent", self._session, **event)
        self._browser.take("Page.lifecycleEvent", self._session)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, or of what it promises."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def settle(self) -> None:
        """Until what has been asked for is drawn."""
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )

    def mouse(self, kind: str, x: float, y: float) -> None:
        pressed = {"button": "left", "buttons": 1, "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        self.mouse("mousePressed", *start)
        for step in (0.3, 0.7, 1.0):
            x, y = (a + step * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y)
        self.mouse("mouseReleased", *end)
        self.settle()

    def swipe(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A drag by a finger."""
        for step in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
            x, y = (a + step * (b - a) for a, b in zip(start, end, strict=True))
            kind = "touchMove" if step else "touchStart"
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        named = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **named)
        self.call("Input.dispatchKeyEvent", type="keyUp", **named)
        self.settle()

    def requests(self) -> list[str]:
        """The addresses that have been asked for since the last time."""
        sent = self._browser.take("Network.requestWillBeSent", self._session)
        return [event["request"]["url"] for event in sent]

    def complaints(self) -> list[str]:
        """What the console has been told of errors and warnings since the last time."""
        take = self._browser.take
        thrown = take("Runtime.exceptionThrown", self._session)
        said = take("Runtime.consoleAPICalled", self._session)
        logged = take("Log.entryAdded", self._session)
        return [
            *(event["exceptionDetails"]["exception"]["description"] for event in thrown),
            *(str(event["args"]) for event in said if event["type"] in ("error", "warning")),
            *(e["entry"]["text"] for e in logged if e["entry"]["level"] in ("error", "warning")),
        ]

    def screenshot(self, path: Path, *, full: bool = True) -> None:
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=full)
        path.write_bytes(base64.b64decode(picture["data"]))

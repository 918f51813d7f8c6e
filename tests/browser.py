"""A headless Chromium that looks at pages as people do: its debugging protocol over two pipes, nothing to install.

`opened()` gives one ($BROWSER, or Debian's `chromium`); tests that need it skip where there is none.
"""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "no Chromium here (Debian: apt-get install chromium, or BROWSER=/path/to/chromium): pages are not looked at"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
PATIENCE = 120.0  # seconds for one reply, on a busy machine

# The browser reads commands from descriptor 3 and answers on 4.
START = """
import fcntl, os, sys
for wanted, given in enumerate([fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]], start=3):
    os.dup2(given, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""

# Elements whose text stands out too little from what is behind it (WCAG 2.1, 4.5 : 1; 3 : 1 for large letters).
FAINT = """
(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat([1]);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(rgba(getComputedStyle(e).backgroundColor));
    return layers.reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (element.getBoundingClientRect().right <= 0) continue;  // in a drawer that is shut
    const style = getComputedStyle(element), under = behind(element);
    const [a, b] = [light(over(rgba(style.color), under)), light(under)].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) faint.push(text.slice(0, 40));
  }
  return faint;
})()
"""

# Elements that reach beyond the window, apart from those inside a box that scrolls by itself.
WIDE = """
(() => {
  const root = document.documentElement;
  const scrolls = e => e && (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(e).overflowX)
    ? e !== root && e !== document.body : scrolls(e.parentElement));
  return [...document.body.querySelectorAll("*")]
    .filter(e => e.checkVisibility() && e.getBoundingClientRect().right > root.clientWidth + 1)
    .filter(e => !scrolls(e.parentElement))
    .map(e => `${e.tagName} ${e.textContent.trim().slice(0, 40)}`);
})()
"""


def find() -> str | None:
    """Path of a browser; None where there is none."""
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("BROWSER"), *NAMES)))), None)


@contextlib.contextmanager
def opened():
    """A browser for one block; skips the test where there is none, or where it does not start on this machine."""
    path = find()
    if path is None:
        pytest.skip(MISSING)
    try:
        browser = Browser(path)
    except (AssertionError, OSError) as error:
        pytest.skip(f"{path} does not start here ({error}): pages are not looked at")
    try:
        yield browser
    finally:
        browser.close()


class Browser:
    """One browser with one page. `errors` holds what scripts of the page raised, and files that it missed."""

    def __init__(self, path: str):
        self._profile = tempfile.TemporaryDirectory(prefix="jaxdp-browser-", ignore_cleanup_errors=True)
        self._number, self._received, self.errors = 0, b"", []
        self._loaded = False
        into, out = os.pipe(), os.pipe()
        command = [path, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(into[0]), str(out[1]), *command],
            pass_fds=(into[0], out[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(into[0])
        os.close(out[1])
        self._write, self._read = into[1], out[0]
        self._page = None
        try:
            self._attach()
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _attach(self) -> None:
        """Takes hold of the first page."""
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(found["targetId"] for found in targets if found["type"] == "page")
        self._page = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, address, width: int = 1280, height: int = 900) -> None:
        """Loads a path or an address in a window of this size; a phone's where it is narrow."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self._loaded, self.errors = False, []
        self._call("Page.navigate", url=address.as_uri() if isinstance(address, Path) else address)
        while not self._loaded:
            self._next()

    def evaluate(self, script: str):
        """Value of a JavaScript expression."""
        found = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def pdf(self) -> bytes:
        """The page as it is printed, on A4."""
        printed = self._call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        return base64.b64decode(printed["data"])

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def close(self) -> None:
        """Ends the browser."""
        os.close(self._write)  # it leaves when nobody can command it any more
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def _call(self, method: str, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._page is not None:
            message["sessionId"] = self._page
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found["error"]
                return found["result"]

    def _next(self) -> dict:
        """The next message; events are noted."""
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            content = os.read(self._read, 1 << 20) if ready else b""
            assert content, "the browser does not answer"
            self._received += content
        text, _, self._received = self._received.partition(b"\0")
        message = json.loads(text)
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"]["text"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        return message

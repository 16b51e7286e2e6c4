"""JupyterLab in headless Chromium, for the tests that look at notebooks as a learner sees them.

`start_jupyterlab` serves a folder on a free port with settings of its own; `Notebook` drives one open notebook: run it,
find its panels, read its errors, switch the theme, take a picture.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # also what is off the screen is drawn
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}

ROUND_TRIP = """() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.requestExecute(
  {code: '', silent: true, store_history: false}).done.then(() => null)"""
MOST_PIXELS = 16_000
TALL = """() => {
  const cells = [...document.querySelectorAll('.jp-WindowedPanel-outer .jp-Cell')].map(e => e.getBoundingClientRect());
  return Math.ceil(Math.max(...cells.map(r => r.bottom)) - Math.min(...cells.map(r => r.top))) + 140;
}"""


def chromium_path() -> str | None:
    """The browser to use: CHROMIUM in the environment, or the first found of the usual names."""
    usual = map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))
    return os.environ.get("CHROMIUM") or next(filter(None, usual), None)


@contextmanager
def start_browser():
    """Headless Chromium; closes at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def start_jupyterlab(folder: Path, scratch: Path, env: dict[str, str] | None = None):
    """JupyterLab serving `folder`; gives its address with the token. All it writes goes to `scratch`."""
    for name, values in SETTINGS.items():
        path = scratch / "settings" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    own = {
        "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython", "MPLCONFIGDIR": "matplotlib",
    }
    environment = os.environ | {key: str(scratch / name) for key, name in own.items()} | (env or {})
    port, token = free_port(), secrets.token_hex(16)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True", "--LanguageServerManager.autodetect=False",
    ]
    log = scratch / "jupyterlab.log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status?token={token}", server, log)
        yield f"http://127.0.0.1:{port}/lab", token
    finally:
        server.terminate()  # JupyterLab shuts its kernels down
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(address: str, server: subprocess.Popen, log: Path, seconds: int = 120) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8', errors='replace')[-2000:]}")


class Notebook:
    """One notebook open in JupyterLab. `page` is Playwright's page, for whatever is not provided here."""

    def __init__(self, browser, address: str, token: str, path: str, width: int = 1200, height: int = 1000):
        from playwright.sync_api import TimeoutError as PlaywrightTimeout

        self.context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
        self.page = self.context.new_page()
        self.problems: list[str] = []  # what the browser's console reports as an error
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.set_default_timeout(120_000)
        self.page.goto(f"{address}/tree/{path}?token={token}&reset")
        try:
            self._wait_until_ready(60)
        except PlaywrightTimeout:  # on a busy machine the page may miss that the kernel is there
            self.page.reload()
            self._wait_until_ready(120)
        self.page.evaluate("() => { jupyterapp.shell.collapseLeft(); jupyterapp.shell.collapseRight(); }")

    def _wait_until_ready(self, seconds: int) -> None:
        open_ = "window.jupyterapp?.shell.currentWidget?.content?.widgets?.length > 0"
        idle = "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        self.page.wait_for_function(f"{open_} && {idle}", timeout=seconds * 1000)

    def close(self) -> None:
        self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.context.close()

    def run_all(self, seconds: int = 120) -> None:
        """Run every cell and wait until the last is done."""
        self.page.evaluate("() => { window.ran = false; jupyterapp.commands.execute('notebook:run-all-cells')"
                           ".finally(() => { window.ran = true; }); }")
        self.page.wait_for_function("window.ran", timeout=seconds * 1000)

    def errors(self) -> list[str]:
        """Exceptions in the outputs, and widgets that could not be shown."""
        shown = self.page.locator('.jp-OutputArea [data-mime-type="application/vnd.jupyter.error"], '
                                  '.jp-RenderedText[data-mime-type="application/vnd.jupyter.stderr"]').all_inner_texts()
        broken = self.page.get_by_text("Error displaying widget").all_inner_texts()
        return [*shown, *broken, *self.problems]

    def panels(self):
        """The panels of the notebook, in order."""
        vbox = ".jp-OutputArea-output .widget-vbox:not(.widget-vbox .widget-vbox)"
        return self.page.locator(vbox).filter(has=self.page.locator(".said"))

    def panel(self, at: int = 0):
        return self.panels().nth(at)

    def settle(self) -> None:
        """Wait until the kernel has done what a control asked for.

        It takes messages in order, so it is done when it has answered one sent later; twice, as a widget holds a
        second change back until the first is answered.
        """
        for _ in range(2):
            self.page.evaluate(ROUND_TRIP)
        self.page.wait_for_timeout(60)

    def move_controls(self, panel) -> list[str]:
        """Use every control of a panel by keyboard; gives what the panel said before and after each."""
        said = [panel.locator(".said").inner_text()]

        def note() -> None:
            self.settle()
            said.append(panel.locator(".said").inner_text())

        for handle in panel.get_by_role("slider").all():
            before = handle.get_attribute("aria-valuenow")
            handle.press("ArrowRight")
            if handle.get_attribute("aria-valuenow") == before:
                handle.press("ArrowLeft")
            note()
        for box in panel.locator("input[type=number]:not([disabled])").all():
            box.press("ArrowUp")
            box.press("Enter")
            note()
        for box in panel.locator("select").all():
            values = box.evaluate("box => [...box.options].map(option => option.value).filter(v => v !== box.value)")
            if values:
                box.select_option(values[0])
                note()
        for box in panel.locator("input[type=text]").all():
            box.fill("How do I return an item?")
            box.press("Enter")
            note()
        for box in panel.locator("input[type=date]").all():
            box.fill("2026-11-02")
            note()
        for box in panel.locator("input[type=checkbox]").all():
            box.press("Space")
            note()
        panel.get_by_text("Show as text").press("Enter")
        panel.locator("pre").last.wait_for()
        note()
        end = time.monotonic() + 30  # on a busy machine the page may show late what the kernel said
        while len(set(said)) == 1 and time.monotonic() < end:
            note()
        return said

    def cut_off(self, panel) -> list[str]:
        """What is wider than the place it has: text that a reader would not see, or would have to scroll to."""
        return panel.locator(".widget-html, .widget-html-content, button, .widget-label, table").evaluate_all(
            "all => all.filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth).map(e => e.className + ': ' "
            "+ e.innerText.slice(0, 60))")

    def says(self, panel, text: str) -> None:
        """Wait until the first line of the panel's view holds this text."""
        panel.locator(".said").filter(has_text=text).wait_for(timeout=60_000)

    def theme(self, name: str) -> None:
        """light or dark."""
        self.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[name])
        light = "true" if name == "light" else "false"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def picture(self, path: Path, of=None) -> Path:
        """A picture of one element, or of all of the notebook."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if of is not None:
            of.screenshot(path=path)
            return path
        size = self.page.viewport_size
        self.page.set_viewport_size({"width": size["width"], "height": min(self.page.evaluate(TALL), MOST_PIXELS)})
        self.page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTo(0, 0)")
        self.page.wait_for_timeout(300)
        self.page.screenshot(path=path)
        self.page.set_viewport_size(size)
        return path

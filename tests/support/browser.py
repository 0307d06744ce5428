"""A real browser: Chromium, driven by Playwright. What a page asks for, says and raises is watched from its begin."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

__all__ = ["Watched", "browser", "missing"]

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The browser of this machine; `CALLWRIGHT_CHROMIUM` names another."""
    return os.environ.get("CALLWRIGHT_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def missing() -> str | None:
    """Why there is no browser here; None where there is one."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright is not installed (CALLWRIGHT_CLIENTS=1 scripts/test)"
    return None if chromium() else "there is no Chromium: apt-get install chromium"


class Watched:
    """A page of a gateway. `wrong` is what may not be: requests to anywhere else, errors, breaches of the policy."""

    def __init__(self, page: Any, url: str) -> None:
        self.page = page
        self.url = url
        self.wrong: list[str] = []
        page.on("request", self._asked)
        page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", self._dialog)

    def open(self, path: str) -> Any:
        """Go to a page, and wait until its shell stands."""
        self.page.goto(self.url + path)
        self.page.wait_for_selector("header nav")
        return self.page

    def forget_refused(self) -> None:
        """Forget what the browser says of each request that had no key, or a wrong one."""
        self.wrong = [wrong for wrong in self.wrong if "401" not in wrong]

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.url + "/", "data:", "blob:")):
            self.wrong.append(f"asked {request.url}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"a script ran: {dialog.message}")
        dialog.dismiss()


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window."""
    if (why := missing()) is not None:
        pytest.skip(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox.
        arguments = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
        found = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        try:
            yield found
        finally:
            found.close()

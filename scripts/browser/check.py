"""Opens report pages in Chromium, as a reader would, and checks what only a browser can tell.

A page passes if
  console    it logs no error and throws no exception
  network    it asks for nothing but itself (data: URLs are free)
  figures    each figure that <body data-figures> names is there, visible and drawn, and so are those of --expect
  structure  html has a lang, the page a title, ids are unique, headings skip no level, every svg says what it shows
  overflow   nothing sticks out at 1600 and at 400 px, and no label is cut off
  tooltip    #tip shows while the pointer is on a mark (g.tip), inside the window, and is gone afterwards
  keyboard   Tab reaches the button #theme, and Enter presses it
  theme      #theme changes between light and dark, and the background with it
  contrast   all text has a contrast of 4.5 or more, in both
  print      it prints on white, readably, also when it is dark
"""

import argparse
import os
import sys
import time
from pathlib import Path

try:
    from playwright.sync_api import Error as BrowserError
    from playwright.sync_api import sync_playwright
except ImportError:
    sys.exit(print("check.py needs playwright: start it by scripts/browser-test.", file=sys.stderr) or 2)

PROBES = Path(__file__).with_name("probes.js").read_text()
SIZES = {1600: 1000, 400: 800}  # widths and heights of the window
PATIENCE = 1000  # milliseconds that a tooltip may take
TABS = 50  # presses of Tab that may be needed to reach #theme


def some(things):
    """The first few of many, as part of a sentence."""
    return "; ".join(things[:3]) + (f"; and {len(things) - 3} more" if len(things) > 3 else "")


class Visit:
    """One page in a window of its own, and what was found wrong with it."""

    def __init__(self, browser, path, expected=(), shots=None):
        self.path, self.url, self.expected, self.shots = path, path.absolute().as_uri(), list(expected), shots
        self.failures = []  # (check, sentence)
        self.figures_there = []
        self.context = browser.new_context(color_scheme="light", reduced_motion="reduce")
        self.context.set_default_timeout(5000)
        self.context.route(self.foreign, lambda route: route.fulfill(status=204))
        self.page = self.context.new_page()
        self.page.on("console", self.on_console)
        self.page.on("pageerror", lambda error: self.fail("console", f"an exception was not caught: {error}"))
        self.page.on("request", lambda request: self.foreign(request.url) and self.on_request(request.url))
        self.page.on("websocket", lambda socket: self.on_request(socket.url))

    def foreign(self, url):
        # Requests that are not the page's own are answered here, emptily: nothing leaves the machine, and the console
        # stays quiet, so that one fault is one failure.
        return url.split("#")[0] != self.url and not url.startswith("data:")

    def fail(self, check, sentence):
        if (check, sentence) not in self.failures:
            self.failures.append((check, sentence))

    def on_console(self, message):
        if message.type in ("error", "assert"):
            self.fail("console", f"the console has an error: {message.text}")

    def on_request(self, url):
        self.fail("network", f"it asks for {url}")

    def probe(self, name, *arguments):
        return self.page.evaluate("([name, ...rest]) => probe[name](...rest)", [name, *arguments])

    def ask(self, check, *arguments, before=""):
        """Fails if a probe finds anything wrong."""
        wrong = self.probe(check, *arguments)
        if wrong:
            self.fail(check, before + some(wrong))

    def resize(self, width):
        self.page.set_viewport_size({"width": width, "height": SIZES[width]})
        self.probe("settle")

    def run(self):
        """All failures. A check that the browser breaks off fails, and the next one goes on."""
        try:
            self.page.goto(self.url)
            self.page.evaluate(PROBES)
            self.figures_there = self.probe("named")
            # The keyboard goes before the first click, which would already give #theme the focus.
            for check in (self.figures, self.structure, self.layout, self.keyboard, self.theme, self.print):
                try:
                    check()
                except BrowserError as error:
                    self.fail(check.__name__, f"the browser gave up: {error.message.splitlines()[0]}")
        except BrowserError as error:
            self.fail("load", f"the browser gave up: {error.message.splitlines()[0]}")
        finally:
            self.context.close()
        return self.failures

    def figures(self):
        self.ask("figures", self.expected)

    def structure(self):
        self.ask("structure")

    def layout(self):
        figures = self.figures_there
        for width in SIZES:
            self.resize(width)
            self.ask("overflow", before=f"at a width of {width} px ")
            # The marks at both ends: there a tooltip is most likely to leave the window. Once is enough to fail.
            figures = [name for name in figures if all(self.tooltip(name, width, last) for last in (False, True))]
        self.resize(max(SIZES))

    def tooltip(self, figure, width, last):
        wrong = self.hover(self.probe("mark", figure, last))
        if wrong:
            self.page.mouse.move(1, 1)
            self.fail("tooltip", f"{wrong} of #fig-{figure}, at a width of {width} px")
        return not wrong

    def hover(self, found):
        """What goes wrong on a mark, as the beginning of a sentence."""
        if not found["marks"]:
            return None
        if not found["point"]:
            return "the pointer reaches no mark"
        self.probe("settle")  # the page hears of the scrolling in its next frame, and may hide #tip then
        self.page.mouse.move(*found["point"])
        if not self.becomes("probe.tip()?.text"):
            return "#tip does not show on a mark"
        self.probe("settle")
        tip = self.probe("tip")
        if not tip:  # it gets under the pointer, which so leaves the mark
            return "#tip goes away while the pointer rests on a mark"
        if not tip["inside"]:
            return "#tip leaves the window on a mark"
        self.page.mouse.move(1, 1)
        if not self.becomes("!probe.tip()"):
            return "#tip stays when the pointer has left a mark"
        return None

    def becomes(self, condition):
        try:
            return self.page.wait_for_function(condition, timeout=PATIENCE) is not None
        except BrowserError:
            return False

    def keyboard(self):
        for _ in range(TABS):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("document.activeElement?.id") == "theme":
                break
        else:
            return self.fail("keyboard", f"{TABS} presses of Tab do not reach #theme")
        before = self.probe("theme")
        self.page.keyboard.press("Enter")
        if not self.becomes(f"probe.theme() !== '{before}'"):
            self.fail("keyboard", "Enter on #theme does not change the theme")

    def press_theme(self):
        self.page.click("button#theme")
        self.probe("settle")
        return self.probe("theme")

    def theme(self):
        if not self.page.query_selector("button#theme"):
            return self.fail("theme", "there is no button #theme")
        backgrounds = {}
        for _ in range(2):
            theme = self.press_theme()
            backgrounds[theme] = self.probe("background")
            self.ask("contrast", before=f"in the theme {theme} ")
            self.shoot(theme)
        if set(backgrounds) != {"light", "dark"}:
            self.fail("theme", f"pressed twice, #theme gave {' and '.join(backgrounds)}, not light and dark")
        elif backgrounds["light"] == backgrounds["dark"]:
            self.fail("theme", "the background is the same in both themes")

    def shoot(self, theme):
        if self.shots:
            for width in reversed(SIZES):
                self.resize(width)
                self.page.screenshot(path=self.shots / f"{self.path.stem}-{theme}-{width}.png", full_page=True)

    def print(self):
        if self.probe("theme") != "dark" and self.page.query_selector("button#theme"):
            self.press_theme()
        self.page.emulate_media(media="print")
        self.probe("settle")
        background = self.probe("background")
        if background != "255 255 255":
            self.fail("print", f"the dark page is not printed on white, but on rgb({background})")
        elif self.probe("contrast"):
            self.fail("print", f"of the dark page on paper, {some(self.probe('contrast'))}")
        if not self.page.pdf().startswith(b"%PDF"):
            self.fail("print", "it cannot be printed to a PDF file")


def check_pages(browser, pages, expected, shots):
    start, figures, failed = time.monotonic(), 0, 0
    for path in pages:
        visit = Visit(browser, path, expected, shots)
        for check, sentence in visit.run():
            print(f"{path}: {check}: {sentence}.")
        figures += len(visit.figures_there)
        failed += bool(visit.failures)
    print(f"{len(pages)} pages with {figures} figures in the browser: {len(pages) - failed} passed, {failed} failed, "
          f"{time.monotonic() - start:.1f} s.")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="scripts/browser-test", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--expect", default="", metavar="NAMES", help="figures that must be there: pairs,metrics,...")
    parser.add_argument("--shots", type=Path, metavar="DIR", help="save screenshots, in both themes and widths")
    parser.add_argument("--self-test", action="store_true", help="check that the checks fail when they should")
    arguments = parser.parse_args()
    if bool(arguments.pages) == arguments.self_test:
        parser.error("give pages, or --self-test")
    for path in arguments.pages:
        if not path.is_file():
            parser.error(f"there is no file {path}")
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=os.environ.get("CHROMIUM"))
        except BrowserError as error:
            print(f"The browser test cannot run: Chromium does not start.\n{error.message}", file=sys.stderr)
            return 2
        if arguments.self_test:
            import selftest
            return selftest.run(browser, Visit)
        expected = [name for name in arguments.expect.split(",") if name]
        return check_pages(browser, arguments.pages, expected, arguments.shots)


if __name__ == "__main__":
    sys.exit(main())

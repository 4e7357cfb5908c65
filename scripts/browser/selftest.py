"""Shows that the checks can fail: a good page passes, and each of its broken copies fails by the check it breaks."""

import tempfile
import time
from pathlib import Path

GOOD = """<!doctype html>
<html lang="en" data-theme="light">
<meta charset="utf-8">
<title>A good page</title>
<style>
  :root { --paper: #fff; --ink: #222; --muted: #666 }
  :root[data-theme=dark] { --paper: #181818; --ink: #ddd; --muted: #999 }
  @media print { :root[data-theme=dark] { --paper: #fff; --ink: #222; --muted: #666 } }
  body { background: var(--paper); color: var(--ink); transition: background 0.3s }
  .muted { color: var(--muted) }
  .wide { overflow-x: auto }
  svg { width: 100%; fill: var(--ink) }
  #tip { position: fixed; left: 0; top: 0; max-width: 300px; pointer-events: none }
</style>
<body data-figures="pairs time">
  <h1>Good</h1>
  <button id="theme">Theme</button>
  <p class="muted">Quiet words.</p>
  <div class="wide"><p style="width: 2000px">What is wide scrolls by itself.</p></div>
  <img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">
  <details><summary>More</summary><p>Folded</p></details>
  <h2>Figures</h2>
  <figure id="fig-pairs"><svg role="img" aria-label="Two marks" viewBox="0 0 100 50">
    <g class="tip" data-tip="bent"><path d="M5 5 V45 H45" fill="none" stroke="currentColor"/></g>
    <g class="tip" data-tip="at the right end"><circle cx="95" cy="25" r="5"/></g>
    <rect x="50" y="35" width="20" height="14" fill="#222"/><text x="52" y="46" font-size="9" fill="#eee">on</text>
  </svg></figure>
  <figure id="fig-time"><svg role="img" aria-label="No mark" viewBox="0 0 100 20">
    <path d="M0 0 H9 V9"/><text x="-9"/>
  </svg></figure>
  <div id="tip" hidden></div>
  <script>
    const root = document.documentElement, tip = document.getElementById("tip");
    document.getElementById("theme").onclick = () => {
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    };
    document.onscroll = () => tip.hidden = true;
    document.onpointerover = (event) => {
      const mark = event.target.closest("g.tip");
      tip.hidden = !mark;
      tip.textContent = mark?.dataset.tip;
      const place = Math.min(event.clientX, innerWidth - tip.offsetWidth);
      tip.style.translate = `${place}px ${event.clientY}px`;
    };
  </script>
</body>
</html>
"""

# What is broken, what it is made of, by what, and the checks that must fail: these and no others.
BROKEN = [
    ("an error on the console", "const root", "console.error('oh'); const root", "console"),
    ("an exception", "const root", "setTimeout(() => { throw Error('oh') }); const root", "console"),
    ("an image from elsewhere", 'src="data:image/gif;base64,R0lG', 'src="http://localhost:9/R0lG', "network"),
    ("a script in another file", "<script>", '<script src="other.js"></script><script>', "network"),
    ("a style sheet from elsewhere", "<style>", "<style>@import url('http://localhost:9/a.css');", "network"),
    ("a missing figure", 'id="fig-time"', "", "figures"),
    ("a figure that is not named", "pairs time", "pairs", "figures"),
    ("an empty figure", '<path d="M0 0 H9 V9"/>', "<g/>", "figures"),
    ("a hidden figure", "svg {", "#fig-time { visibility: hidden } svg {", "figures"),
    ("a picture without words", 'aria-label="No mark"', "", "structure"),
    ("a picture without a role", 'role="img" aria-label="No mark"', 'aria-label="No mark"', "structure"),
    ("an id given twice", "<h1>", '<i id="a"></i><i id="a"></i><h1>', "structure"),
    ("a skipped level", "h2>", "h3>", "structure"),
    ("no language", ' lang="en"', "", "structure"),
    ("no title", "A good page", "", "structure"),
    ("a wide table", ".wide { overflow-x: auto }", "", "overflow"),
    ("a wide table, cut off", "overflow-x: auto", "overflow-x: hidden", "overflow"),
    ("a block too wide for a phone", 'class="muted"', 'class="muted" style="width: 500px"', "overflow"),
    ("a wide block, folded", "<p>Folded", '<p style="width: 500px">Folded', "overflow"),
    ("a label that is cut off", "H9 V9\"/>", 'H9 V9"/><text x="90" y="9">Label</text>', "overflow"),
    ("a tooltip that never shows", "tip.hidden = !mark", "tip.hidden = true", "tooltip"),
    ("a tooltip that says nothing", "mark?.dataset.tip", "''", "tooltip"),
    ("a tooltip that stays", "tip.hidden = !mark", "if (!mark) return; tip.hidden = false", "tooltip"),
    ("a tooltip that stays, empty", "tip.hidden = !mark", "tip.hidden &&= !mark; tip.style.padding = '1px'", "tooltip"),
    ("a tooltip that flickers", "pointer-events: none", "", "tooltip"),
    ("a tooltip outside the window", "Math.min(event.clientX, innerWidth - tip.offsetWidth)", "event.x", "tooltip"),
    ("covered marks", "svg {", "svg g { pointer-events: none } svg {", "tooltip"),
    ("a button that no key reaches", '<button id="theme">', '<button id="theme" tabindex="-1">', "keyboard"),
    ("a button for mice only", ".onclick = () => {", ".onclick = (e) => { if (!e.detail) return;", "keyboard"),
    ("a button that does nothing", '"dark" ? "light" : "dark"', '"dark" ? "dark" : "light"', "keyboard theme"),
    ("a dark theme that is light", "--paper: #181818; --ink: #ddd; --muted: #999", "", "theme"),
    ("faint text in the light", "--muted: #666 }\n  :root[", "--muted: #888 }\n  :root[", "contrast"),
    ("faint text in the dark", "--muted: #999", "--muted: #666", "contrast"),
    ("faint text, folded", "<p>Folded", '<p style="color: #777">Folded', "contrast print"),
    ("text faint by its opacity", ".muted {", ".muted { opacity: 0.5;", "contrast print"),
    ("a label as dark as its bar", 'fill="#eee"', "", "contrast print"),
    ("dark paper", "--paper: #fff; --ink: #222; --muted: #666 } }", "} }", "print"),
    ("light ink on paper", "--paper: #fff; --ink: #222; --muted: #666 } }", "--paper: #fff } }", "print"),
]


def run(browser, visit):
    """Prints what is not as it should be."""
    start, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        for name, old, new, checks in [("nothing wrong", "", "", ""), *BROKEN]:
            assert old in GOOD, f"the good page has no {old}"
            page.write_text(GOOD.replace(old, new) if old else GOOD)
            failures = visit(browser, page, ["pairs"]).run()
            if {check for check, _ in failures} != set(checks.split()):
                wrong += 1
                print(f"With {name}, {checks or 'no check'} must fail, and these did:", *failures, sep="\n  ")
    print(f"The browser test tested: a good page and {len(BROKEN)} broken ones, {wrong} not judged as they should be, "
          f"{time.monotonic() - start:.1f} s.")
    return 1 if wrong else 0

"""Hostile names of parameters and summaries: refused with a sentence, or right in every file and harmless on a terminal."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path
from urllib.parse import unquote

from .cases import Case, Done, Fault, Skip

#: Names in problem files, the header of an observation's CSV file, and names given in Python.
SURFACES = ["problem", "observed", "python"]
#: The first five are those of the slice.
NAMES = [
    "a,b", "# x", "inf", "\x1b[31mred", "=1+1", "../up", 'say "x"', "'x'", "#", "-inf", "nan", "NaN", "1", "1e5", "-1", "+x", "-x", "@x",
    "a;b", "a\tb", "a\nb", "a\r\nb", "bell\x07", "nul\x00", "del\x7f", "c1\x9b31m", "/etc/x", "a/b", "a\\b", "..", ".", "a.npy", " x ",
    "x y", "{seed}", "{x}", "%s", "$(x)", "`x`", "<b>x</b>", "&amp;", "\u202egnp", "\u200b", "\ufeffx", "e\u0301", "é", "θ", "日本",
    "x" * 300, "x" * 5000, "log_density", "index", "x1", "round", "seed", "con", "--help", "-h", "|x", "*", "~", "null", "true", "",
]
SAMPLES = 40
ROWS = 24

SCRIPT = """import json, sys
import didyma
given = json.loads(sys.argv[1])
try:
    prior = didyma.Uniform([-1, -1], 1, names=given["parameters"])
    didyma.infer(
        lambda theta, rng: theta + 0.1 * rng.normal(size=2), prior, [0.2, -0.1], summaries=given["summaries"], out="run",
        threads=1, device="cpu", progress=False, settings=given["settings"],
    )
except didyma.DidymaError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
"""
SETTINGS = {
    "rounds": 1, "simulations": ROWS, "samples": SAMPLES, "train.steps": 4, "flow.layers": 1, "flow.units": 8,
    "truncation.draws": 1000,
}


def play(case: Case) -> None:
    """Plays one case: one hostile name, or two, among harmless ones."""
    hostile = NAMES[case.number % len(NAMES)]
    parameters = [hostile, "plain"] if case.random.random() < 0.5 else ["plain", hostile]
    summaries = [case.random.choice([hostile, case.random.choice(NAMES), "s1"]), "s2"]
    if case.surface == "observed":
        parameters = ["a", "b"]
    (case.folder / "names.json").write_text(json.dumps([parameters, summaries]))
    done = INFER[case.surface](case, parameters, summaries)
    clean(case, done)
    if done.code == 2:
        return
    posterior(case, parameters)
    if case.surface != "python":
        simulated(case, parameters, summaries)
    for words in (["show", "run"], ["report", "run", "--out", "page.html", "--figures", "figures"], ["watch", "run"]):
        clean(case, case.didyma(*words).expect(0))


def clean(case: Case, done: Done) -> None:
    """No control character in what was said, and none in the name of a file."""
    text = done.judge().told
    raw = sorted({hex(ord(c)) for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c in "\u202e\u202d"})
    if raw:
        raise Fault(f"control characters reach the terminal: {raw} of `{' '.join(map(repr, done.words[1:3]))}`")
    inside = {path.relative_to(case.folder) for path in case.folder.rglob("*")}
    odd = [str(path) for path in inside if any(ord(c) < 32 or ord(c) == 127 for c in str(path))]
    if odd:
        raise Fault(f"control characters in the names of files: {odd!r}")
    archive = case.folder / "run/posterior.npz"
    entries = zipfile.ZipFile(archive).namelist() if archive.exists() else []
    odd = [name for name in entries if any(ord(c) < 32 or c in "/\\" for c in name)]
    if odd:
        raise Fault(f"entries of posterior.npz that are paths or hold control characters: {odd!r}")


def posterior(case: Case, parameters: list[str]) -> None:
    """The posterior's files have the right columns, for Python and for the program itself."""
    samples = columns(case, case.folder / "run/posterior.csv", parameters, SAMPLES)
    # Separators of paths are written as in addresses.
    entries = [unquote(name) for name in zipfile.ZipFile(case.folder / "run/posterior.npz").namelist()]
    if entries != [f"{name}.npy" for name in parameters]:
        raise Fault(f"posterior.npz has {entries!r} for the parameters {parameters!r}")
    done = case.didyma("log-density", "run", "--theta", "run/posterior.csv", "--out", "density.csv")
    clean(case, done)
    if done.code:
        raise Fault(f"log-density cannot read the run's own posterior.csv: {done.told[-300:]}")
    again = table(case.folder / "density.csv")
    if len(again) != SAMPLES + 1 or [row[:2] for row in again[1:]] != samples:
        raise Fault("log-density read other parameters than those of the run's own posterior.csv")


def simulated(case: Case, parameters: list[str], summaries: list[str]) -> None:
    """The table of `simulate` has a column for each name."""
    done = case.didyma("simulate", "problem.toml", "-n", "5", "--out", "rows.csv").expect(0)
    clean(case, done)
    columns(case, case.folder / "rows.csv", parameters + summaries, 5)


def columns(case: Case, path: Path, names: list[str], count: int) -> list[list[str]]:
    """The rows of a CSV file, whose header and numbers Python's reader finds where they belong."""
    header, *found = table(path)
    if header != names:
        raise Fault(f"{path.name} has the columns {header!r} for {names!r}")
    if any(name[:1] in "=+-@" for name in header if name):
        raise Fault(f"{path.name} has a cell that a spreadsheet takes for a formula: {header!r}")
    if len(found) != count or any(len(row) != len(names) for row in found):
        raise Fault(f"{path.name} has {len(found)} rows for {count}, or rows of another length than its header")
    for row in found:
        [float(cell) for cell in row]
    case.count("rows", len(found))
    case.count("bytes", path.stat().st_size)
    return found


def table(path: Path) -> list[list[str]]:
    """A CSV file without the comments before its header."""
    text = path.read_bytes().decode("utf-8")
    while text.startswith("#"):
        text = text.partition("\n")[2]
    return list(csv.reader(io.StringIO(text, newline="")))


def infer_problem(case: Case, parameters: list[str], summaries: list[str]) -> Done:
    return infer_file(case, parameters, f"x = [0.2, -0.1]\nnames = [{', '.join(map(quoted, summaries))}]")


def infer_observed(case: Case, parameters: list[str], summaries: list[str]) -> Done:
    with open(case.folder / "observed.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([summaries, [0.2, -0.1]])
    return infer_file(case, parameters, 'csv = "observed.csv"')


def infer_file(case: Case, parameters: list[str], observation: str) -> Done:
    (case.folder / "worker.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n    r = json.loads(line)\n"
        "    print(json.dumps({'id': r['id'], 'x': [t + r['seed'] % 100 / 1000 for t in r['theta']]}), flush=True)\n"
    )
    priors = "".join(f"{quoted(name)} = {{ uniform = [-1, 1] }}\n" for name in parameters)
    settings = "".join(f"{key} = {value}\n" for key, value in SETTINGS.items())
    (case.folder / "problem.toml").write_text(
        f"[parameters]\n{priors}[observation]\n{observation}\n[simulator]\n"
        f'command = ["python3", "-I", "-S", "worker.py"]\n[inference]\n{settings}', encoding="utf-8",
    )
    return case.didyma("infer", "problem.toml", "--out", "run", "--threads", "1", "--device", "cpu")


def infer_python(case: Case, parameters: list[str], summaries: list[str]) -> Done:
    if case.product.python is None:
        raise Skip("no Python with didyma: scripts/python-test installs it")
    given = json.dumps({"parameters": parameters, "summaries": summaries, "settings": SETTINGS})
    (case.folder / "infer.py").write_text(SCRIPT)
    return case.run([str(case.product.python), "infer.py", given])


def quoted(name: str) -> str:
    """A basic string of TOML, whose escapes are those of JSON but for DEL."""
    return json.dumps(name).replace("\x7f", "\\u007f")


INFER = {"problem": infer_problem, "observed": infer_observed, "python": infer_python}

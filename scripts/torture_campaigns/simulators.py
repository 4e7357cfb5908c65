"""Hostile simulators: the run ends, and every stored row is right or a failure with a reason.

A simulator that behaves gives x = (θ, a number of the seed). A hostile one does the same but for some seeds, where it
crashes, hangs, lies or babbles: whatever it does there, no other row may suffer.
"""

from __future__ import annotations

import json
from pathlib import Path

from .cases import Case, Fault
from .compare import numbers, rows

#: Workers that are kept, workers that get several rows at once, and a program for each simulation.
SURFACES = ["worker", "batch", "run", "output"]
ROUNDS, SIMULATIONS = 2, 24

#: What goes before every simulator. `bad` says whether a seed is one for mischief; x has all that tells a right row.
HEAD = """import json, os, signal, subprocess, sys, time
def bad(seed): return seed % 1000 < SHARE
def right(request): return [*request["theta"], request["seed"] % 65521]
def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()
"""
WORKER = """def answer(request): return json.dumps({"id": request["id"], "x": right(request)})
def false(ahead): return json.dumps({"id": max(r["id"] for r in requests) + ahead, "x": [9, 9, 9]}) + "\\n"
for line in sys.stdin:
    requests = json.loads("[" + line + "]") if line[0] == "{" else json.loads(line)
    for request in requests:
        if bad(request["seed"]):
            MISCHIEF
        say(answer(request) + "\\n")
END
"""
ONCE = """request = json.load(open(sys.argv[1]))
if len(sys.argv) > 2: sys.stdout = open(sys.argv[2], "w")
if bad(request["seed"]):
    MISCHIEF
say(json.dumps(right(request)))
"""

#: What both kinds do at a bad seed; afterwards they answer, unless it ended them.
BOTH = {
    "exit": "os._exit(3)",
    "exit zero": "os._exit(0)",
    "segfault": "os.kill(os.getpid(), signal.SIGSEGV)",
    "hang": "time.sleep(600)",
    "hang deaf": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
    "flood stderr": "sys.stderr.write('x' * 3000000 + chr(27) + '[2J'); sys.stderr.flush()",
    "close stderr": "os.close(2)",
    "detached child": "subprocess.Popen(['sleep', '4'], start_new_session=True)",
    "child": "subprocess.Popen(['sleep', '4'])",
    "raise": "raise RuntimeError('no convergence')",
}
#: Lies of a worker. A false answer is full of nines.
WORKERS = {
    "early": 'say(answer(request) + "\\n" + false(1)); continue',
    "early far": 'say(answer(request) + "\\n" + "".join(map(false, range(1, 9)))); continue',
    "garbage": 'say("hello { world\\n\\x00\\xff\\n")',
    "bad json": 'say("{\\"id\\": \\n")',
    "binary": "os.write(1, b'{\\xff\\xfe\\n')",
    "half a line": 'say("{\\"id\\":"); os._exit(0)',
    "another id": "say(false(1000000)); continue",
    "twice": 'say(answer(request) + "\\n" + json.dumps({"id": request["id"], "x": [9, 9, 9]}) + "\\n"); continue',
    "few": 'say(json.dumps({"id": request["id"], "x": [9]}) + "\\n"); continue',
    "many": 'say(json.dumps({"id": request["id"], "x": [9] * 9}) + "\\n"); continue',
    "nan": 'say("{\\"id\\": %d, \\"x\\": [NaN, Infinity, 9]}\\n" % request["id"]); continue',
    "huge": 'say("{\\"id\\": %d, \\"x\\": [1e999, 9, 9]}\\n" % request["id"]); continue',
    "words": 'say(json.dumps({"id": request["id"], "x": ["a", None, True]}) + "\\n"); continue',
    "error": 'say(json.dumps({"id": request["id"], "error": "no\\nroot \\x1b[2J"}) + "\\n"); continue',
    "long line": 'say("{" + "1" * 3000000 + "\\n")',
    "no line end": 'say(" " * 300000)',
    "close stdout": "os.close(1); time.sleep(600)",
    "close stdin": 'say(answer(request) + "\\n"); os.close(0); time.sleep(600)',
}
PROGRAMS = {
    "garbage": 'say("hello \\x00 {")',
    "few": 'say("9"); sys.exit(0)',
    "many": 'say("[9,9,9,9,9,9]"); sys.exit(0)',
    "nan": 'say("nan inf 9"); sys.exit(0)',
    "nothing": "sys.exit(0)",
    "half": 'say("[9, 9"); sys.exit(0)',
    "right but failed": "say(json.dumps(right(request))); sys.exit(5)",
    "error": 'say(json.dumps({"error": "no root \\x1b[2J"})); sys.exit(0)',
    "flood": 'say("9 " * 3000000)',
}


def play(case: Case) -> None:
    """Plays one case."""
    worker = case.surface in ("worker", "batch")
    choices = {**(WORKERS if worker else PROGRAMS), **BOTH}
    mischief = list(choices)[case.number % len(choices)]
    # A hang costs its time limit twice, and the seconds in which SIGTERM is heard.
    share = case.random.choice([40, 80]) if "time.sleep(600)" in choices[mischief] else case.random.choice([50, 150, 300])
    (case.folder / "mischief.txt").write_text(mischief + "\n")
    luck = {
        "seed": case.random.randrange(1000), "workers": case.random.choice([1, 2, 3]), "batch": case.random.choice([2, 5]),
        "end": case.random.choice(["", "time.sleep(600)", "os._exit(7)"]),
    }
    good = problem(case, "good", "pass", share, luck)
    hostile = problem(case, "hostile", choices[mischief], share, luck)
    expected = first_rows(case, good)
    done = case.didyma("infer", hostile, "--out", "run", "--threads", "1", "--device", "cpu", limit=120).judge()
    found = rows(case.folder / "run/run.db")
    case.count("rows", len(found))
    failures = judge(mischief, found, expected)
    if done.code == 0:
        count(case, mischief, len(found), failures)
    if any(byte < 32 and byte not in b"\n\t" for byte in done.out + done.err):
        raise Fault(f"{mischief}: a control character of the simulator reached the terminal")


def judge(mischief: str, found: dict, expected: dict) -> int:
    """Every row is right or a failure; how many failed."""
    failures = 0
    for place, (theta, x, failure) in found.items():
        if x is None:
            failures += 1
            if not failure:
                raise Fault(f"{mischief}: row {place} has neither summaries nor a reason")
            continue
        values = numbers(x, 3)
        if values[:2] != numbers(theta, 2):
            raise Fault(f"{mischief}: row {place} has the summaries {values} at θ = {numbers(theta, 2)}")
        if place in expected and values != numbers(expected[place][1], 3):
            raise Fault(f"{mischief}: row {place} is that of another seed")
    return failures


def count(case: Case, mischief: str, stored: int, failures: int) -> None:
    """A run that ended has all of its rows, and says how many failed."""
    shown = json.loads(case.didyma("show", "run", "--json").expect(0).out)
    told = sum(round["failures"] for round in shown["rounds"])
    if stored != ROUNDS * SIMULATIONS or told != failures:
        raise Fault(f"{mischief}: {stored} rows are stored, {failures} of them failures; told are {told}")


def first_rows(case: Case, good: Path) -> dict:
    """The first round of a simulator that behaves: later ones depend on what failed."""
    case.didyma("simulate", good, "--shard", "1/1", "--out", "good.db", "--threads", "1").expect(0)
    return {place: row for place, row in rows(case.folder / "good.db").items() if row[1] is not None}


def problem(case: Case, name: str, mischief: str, share: int, luck: dict) -> Path:
    """A problem file with its simulator."""
    worker = case.surface in ("worker", "batch")
    text = HEAD + (WORKER if worker else ONCE)
    script = case.folder / f"{name}.py"
    end = luck["end"] if name == "hostile" else ""
    script.write_text(text.replace("SHARE", str(share)).replace("MISCHIEF", mischief).replace("END", end))
    interpreter = ["python3", "-I", "-S", str(script)]
    simulator = {
        "worker": {"command": interpreter, "workers": luck["workers"], "start_limit": 1.5},
        "batch": {"command": interpreter, "workers": 2, "batch": luck["batch"], "start_limit": 1.5},
        "run": {"run": [*interpreter, "{input}"]},
        "output": {"run": [*interpreter, "{input}", "{output}"]},
    }[case.surface]
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in simulator.items())
    path = case.folder / f"{name}.toml"
    path.write_text(
        "[parameters]\na = { uniform = [-1, 1] }\nb = { normal = [0, 1] }\n[observation]\nx = [0.2, -0.1, 30000]\n"
        f"[simulator]\n{lines}time_limit = 0.5\n[inference]\nrounds = {ROUNDS}\n"
        f"simulations = {SIMULATIONS}\nsamples = 50\nseed = {luck['seed']}\ntrain.steps = 10\n"
        "flow.layers = 2\nflow.units = 8\ntruncation.draws = 1000\n"
    )
    return path

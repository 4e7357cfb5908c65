"""The tiny runs that are disturbed: their commands, and what they are compared with."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from .cases import Case, Skip
from .compare import tables

#: A run of about a tenth of a second, with simulating, training, checkpoints and results in it.
TINY = {
    "rounds": 2, "simulations": 40, "samples": 200, "scores": "none", "train.steps": 100, "flow.layers": 2, "flow.units": 8,
    "truncation.draws": 1000, "ensemble.members": 2,
}
#: One thread and one kind of kernel: the result is the same for any, and two cases share two cores.
MACHINE = ["--threads", "1", "--device", "cpu"]
#: Tasks and methods of the runs of built-in tasks.
PROBLEMS = [("two-moons", "tsnpe"), ("gaussian-mixture", "tgrr"), ("mg1", "npe"), ("two-moons", "atomic")]

WORKER = """import json, random, sys, time
for line in sys.stdin:
    request = json.loads(line)
    numbers = random.Random(request["seed"])
    time.sleep(0.002)
    x = [value + numbers.gauss(0, 0.1) for value in request["theta"]]
    print(json.dumps({"id": request["id"], "x": x}), flush=True)
"""
PROGRAM = 'BEGIN { srand(seed % 2147483647); print a + rand() / 10, b + rand() / 10 }'
SCRIPT = f"""import sys
import didyma

def simulator(theta, rng):
    return theta + 0.1 * rng.normal(size=2)

didyma.infer(
    simulator, didyma.Uniform([-1, -1], 1), [0.2, -0.1], out=sys.argv[1], resume=True, threads=1, device="cpu",
    progress=False, settings={TINY!r},
)
"""


@dataclass
class Whole:
    """A folder that was made without a disturbance, and how long it took."""

    folder: Path
    seconds: dict[str, float]


def settings() -> list[str]:
    return [word for key, value in TINY.items() for word in ("--set", f"{key}={value}")]


def problem(case: Case, kind: str) -> Path:
    """A problem file whose simulator is a worker that is kept, or a program for each simulation."""

    def make(folder: Path) -> None:
        (folder / "worker.py").write_text(WORKER)
        simulator = {
            "workers": 'command = ["python3", "-I", "-S", "worker.py"]\nworkers = 2',
            "programs": "run = " + json.dumps(["awk", "-v", "a={a}", "-v", "b={b}", "-v", "seed={seed}",
                                               PROGRAM.replace("{", "{{").replace("}", "}}")]),
        }[kind]
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in TINY.items())
        (folder / "problem.toml").write_text(
            f"[parameters]\na = {{ uniform = [-1, 1] }}\nb = {{ uniform = [-1, 1] }}\n[observation]\nx = [0.2, -0.1]\n"
            f"[simulator]\n{simulator}\n[inference]\n{lines}"
        )

    return case.product.reference(f"problem-{kind}", make) / "problem.toml"


def begin(case: Case, surface: str) -> tuple[str, list[str]]:
    """A name for the run of a case, and the command that makes it in the folder `run`."""
    binary = str(case.product.binary)
    if surface == "python":
        if case.product.python is None:
            raise Skip("no Python with didyma: scripts/python-test installs it")
        script = case.folder / "infer.py"
        script.write_text(SCRIPT)
        return "python", [str(case.product.python), str(script), "run"]
    if surface in ("workers", "programs"):
        return surface, [binary, "infer", str(problem(case, surface)), "--out", "run", *MACHINE]
    (task, method), seed = case.random.choice(PROBLEMS), case.random.choice(["1", "2"])
    words = [binary, "infer", task, "--method", method, "--seed", seed, "--out", "run", *settings(), *MACHINE]
    if surface == "seeds":
        return f"seeds-{task}-{method}-{seed}", [*words, "--seeds", "2"]
    return f"infer-{task}-{method}-{seed}", words


def whole(case: Case, name: str, words: list[str], folder_of: str | None = None) -> Whole:
    """The run of these words, made once without a disturbance; in a folder that has to be there, if one is given."""

    def make(folder: Path) -> None:
        # The clock stops at the quickest of three: what comes first also reads the program from the disk.
        seconds = []
        for _ in range(3):
            shutil.rmtree(folder / (folder_of or "run"), ignore_errors=True)
            if folder_of:
                (folder / folder_of).mkdir()
            begun = time.monotonic()
            Case(case.product, case.seed, "reference", name, 0, folder).run(words).expect(0)
            seconds.append(time.monotonic() - begun)
        (folder / "seconds.json").write_text(json.dumps({"run": min(seconds)}))

    return read(case.product.reference(name, make))


def read(folder: Path) -> Whole:
    return Whole(folder, json.loads((folder / "seconds.json").read_text()))


def again(case: Case, words: list[str]) -> list[str]:
    """The command that goes on with a run: the same, or `resume` once it has begun."""
    run = case.folder / "run"
    if words[0] != str(case.product.binary):
        return words
    begun = (run / "seeds.json").exists() if "--seeds" in words else tables(run / "run.db") is not None
    return [words[0], "resume", "run", *MACHINE] if begun else words

"""The benchmark's command line: `python -m benches.sbibm --help` in the repository's root."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import didyma

from . import check, classifiers, forest, tables
from .case import DRAWS, Variant
from .data import DEFAULT, OBSERVATIONS, Refusal, prepare
from .pool import Outcome, cores
from .run import claim, expand, run, score
from .tasks import TASKS

OUT = Path("runs/sbibm")
SCORES = ["c2st", "forest", "nlq", "nlq_true", "disagreement", "seconds", "cpu_seconds"]


def numbers(text: str) -> list[int]:
    """`1-5,8` as a list."""
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        found += range(int(low), int(high) + 1) if dash else [int(low)]
    return found


def observations(text: str) -> list[int]:
    """Numbers of observations."""
    found = numbers(text)
    for number in found:
        if number not in OBSERVATIONS:
            raise argparse.ArgumentTypeError(f"there is no observation {number}: choose of 1 to {OBSERVATIONS[-1]}")
    return found


def words(text: str) -> list[str]:
    return text.split(",")


def tasks(text: str) -> list[str]:
    """Names of tasks; `all` are all ten."""
    chosen = list(TASKS) if text == "all" else words(text)
    for name in chosen:
        if name not in TASKS:
            raise argparse.ArgumentTypeError(f"{name} is no task: choose of {', '.join(TASKS)}, or all")
    return chosen


def setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is no setting: write NAME=VALUE")
    return name, value


def variants(arguments: argparse.Namespace) -> list[Variant]:
    """One for each method; anything but plain methods needs a name."""
    special = arguments.profile or arguments.rounds or arguments.set
    if special and not arguments.name:
        raise Refusal("these settings have no name: choose one by --name")
    methods = arguments.method or [None]
    made = []
    for method in methods:
        known = didyma.settings(method, arguments.profile)
        for name, _ in arguments.set or []:
            if name not in known:
                raise Refusal(f"{name} is no setting: choose of {', '.join(known)}")
        plain = method or "default"
        name = plain if not arguments.name else arguments.name if len(methods) == 1 else f"{arguments.name}-{plain}"
        made.append(Variant(name, method, arguments.profile, arguments.rounds, dict(arguments.set or [])))
    return made


def told(outcome: Outcome) -> int:
    """Says how jobs ended; the exit code."""
    print(f"{outcome.done} done, {len(outcome.failed)} failed, {outcome.missing} not done in time")
    return 1 if outcome.failed else 0


def command_run(arguments: argparse.Namespace) -> int:
    chosen = variants(arguments)
    cases = expand(chosen, arguments.task, arguments.budget, arguments.observation, arguments.seed)
    if not arguments.data.is_file():
        raise Refusal(f"{arguments.data} does not exist: make it by `prepare`, or name it by --data")
    for variant in chosen:
        claim(variant, arguments.out)
    outcome = run(
        cases,
        arguments.data,
        arguments.out,
        (arguments.classifiers, arguments.folds),
        arguments.keep,
        arguments.device,
        arguments.jobs,
        arguments.minutes,
    )
    if arguments.pack:
        print(f"{tables.collect([arguments.out], arguments.pack)} cases in {arguments.pack}")
    return told(outcome)


def command_table(arguments: argparse.Namespace) -> int:
    found = tables.read(arguments.source)
    names = arguments.names or sorted({key[0] for key in found})
    for budget in arguments.budget:
        print(tables.table(found, budget, names, arguments.observation, arguments.score, arguments.published), end="\n\n")
    return 0


def command_prepare(arguments: argparse.Namespace) -> int:
    prepare(arguments.package, arguments.data)
    return 0


def command_check(arguments: argparse.Namespace) -> int:
    if arguments.classifier:
        print(classifiers.check_classifiers(arguments.data, arguments.rows, arguments.seeds))
        return 0
    print(check.check_tasks(arguments.task, arguments.observation, arguments.data, arguments.rows, arguments.steps))
    print()
    print(check.check_solver(50))
    return 0


def parse_jobs(each: argparse.ArgumentParser) -> None:
    """What all commands have that work on cases."""
    each.add_argument("--data", type=Path, default=DEFAULT, help="file of `prepare`")
    each.add_argument("--out", type=Path, default=OUT, help="folder of the cases")
    each.add_argument("--jobs", type=int, default=len(cores()), help="processes side by side (cores)")
    each.add_argument("--minutes", type=float, help="time limit; what is not done then is left out")


def parse_classifiers(each: argparse.ArgumentParser) -> None:
    each.add_argument("--classifiers", type=int, default=4, help="seeds of C2ST's classifier; 0: score later (4)")
    each.add_argument("--folds", type=int, default=5, choices=range(1, 6), help="folds of a seed that are judged (5)")


def parse_prepare(each: argparse.ArgumentParser) -> None:
    each.add_argument("--from", dest="package", type=Path, help="wheel or folder of sbibm (as it is installed)")
    each.add_argument("--data", type=Path, default=DEFAULT, help="file to make")
    each.set_defaults(work=command_prepare)


def parse_run(each: argparse.ArgumentParser) -> None:
    parse_jobs(each)
    parse_classifiers(each)
    each.add_argument("--task", type=tasks, default=list(TASKS), help="names, or all")
    each.add_argument("--method", type=words, help=f"one or more of {', '.join(didyma.methods())} (the default)")
    each.add_argument("--budget", type=numbers, default=[10_000], help="simulations in all (10000)")
    each.add_argument("--observation", type=observations, default=list(OBSERVATIONS)[:5], help="as 1-5 or 6,8 (1-5)")
    each.add_argument("--seed", type=numbers, default=[1], help="as 1-3 (1)")
    each.add_argument("--rounds", type=int, help="rounds of the budget (10; npe: 1)")
    each.add_argument("--profile", help="profile of settings")
    each.add_argument("--set", type=setting, action="append", metavar="NAME=VALUE", help="any setting, repeatable")
    each.add_argument("--name", help="name of this variant (the method)")
    each.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where flows are trained (cpu)")
    each.add_argument("--keep", action="store_true", help="keep the posterior's draws")
    each.add_argument("--pack", type=Path, help="file to merge all cases of --out into at the end")
    each.set_defaults(work=command_run)


def parse_score(each: argparse.ArgumentParser) -> None:
    parse_jobs(each)
    parse_classifiers(each)
    each.add_argument("names", nargs="*", help="variants (all)")
    each.set_defaults(work=lambda a: told(score(a.out, a.names, a.data, (a.classifiers, a.folds), a.jobs, a.minutes)))


def parse_forest(each: argparse.ArgumentParser) -> None:
    parse_jobs(each)
    each.add_argument("names", nargs="*", help="variants (all)")
    each.add_argument("--rows", type=int, default=DRAWS, help=f"rows of each set ({DRAWS})")
    each.set_defaults(work=lambda a: told(forest.score(a.out, a.names, a.data, a.rows, a.jobs, a.minutes)))


def parse_check(each: argparse.ArgumentParser) -> None:
    each.add_argument("--data", type=Path, default=DEFAULT, help="file of `prepare`")
    each.add_argument("--task", type=tasks, default=list(TASKS), help="names, or all")
    each.add_argument("--observation", type=observations, default=list(OBSERVATIONS))
    each.add_argument("--rows", type=int, default=2000, help="rows of a reference that are moved, or of a set (2000)")
    each.add_argument("--steps", type=int, default=50, help="steps of the Markov chain (50)")
    each.add_argument("--classifier", action="store_true", help="check C2ST instead (needs scikit-learn)")
    each.add_argument("--seeds", type=int, default=4, help="seeds of each classifier (4)")
    each.set_defaults(work=command_check)


def parse_collect(each: argparse.ArgumentParser) -> None:
    each.add_argument("source", nargs="+", type=Path, help="folders of cases, or such files")
    each.add_argument("--pack", type=Path, required=True, help="file to write")
    each.set_defaults(work=lambda a: print(f"{tables.collect(a.source, a.pack)} cases") or 0)


def parse_scored(each: argparse.ArgumentParser) -> None:
    """What both commands have that show scores."""
    each.add_argument("source", nargs="+", type=Path, help="folders of cases, or files of `collect`")
    each.add_argument("--score", choices=SCORES, default="c2st")


def parse_table(each: argparse.ArgumentParser) -> None:
    parse_scored(each)
    each.add_argument("--names", type=words, help="variants, one a column (all)")
    each.add_argument("--budget", type=numbers, default=[1000, 10_000, 100_000])
    each.add_argument("--observation", type=observations, default=list(OBSERVATIONS))
    each.add_argument("--published", type=words, default=[], help="published algorithms to show, as SNPE,NPE")
    each.set_defaults(work=command_table)


def parse_compare(each: argparse.ArgumentParser) -> None:
    parse_scored(each)
    each.add_argument("--first", required=True)
    each.add_argument("--second", required=True)
    each.set_defaults(work=lambda a: print(tables.compare(tables.read(a.source), a.first, a.second, a.score)) or 0)


#: Each command's arguments, and its help.
COMMANDS = {
    "prepare": (parse_prepare, "pack sbibm's observations and references into one file"),
    "run": (parse_run, "do the cases that are missing"),
    "score": (parse_score, "score kept draws by more seeds of the classifier"),
    "forest": (parse_forest, "score kept draws by a random forest (needs scikit-learn)"),
    "check": (parse_check, "check the tasks against sbibm's observations and references"),
    "collect": (parse_collect, "merge cases into one file"),
    "table": (parse_table, "print tables beside the published numbers"),
    "compare": (parse_compare, "compare two variants case by case"),
}


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m benches.sbibm", description="The public benchmark sbibm, for didyma.")
    commands = top.add_subparsers(required=True)
    for name, (parse, text) in COMMANDS.items():
        parse(commands.add_parser(name, help=text))
    return top


def main() -> int:
    arguments = parser().parse_args()
    try:
        return int(arguments.work(arguments))
    except (Refusal, didyma.InputError) as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""Whole runs: the same as the command line's, results, files, reports."""

from __future__ import annotations

import csv
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

import didyma
from conftest import QUICK, X_O, noisy_row, prior

#: The program, if the tests were given one; else the command line of the package itself.
COMMAND = [os.environ["DIDYMA"]] if "DIDYMA" in os.environ else [sys.executable, "-m", "didyma"]


@pytest.mark.parametrize("method", ["tsnpe", "tgrr", "npe"])
def test_the_command_line_gives_the_same_bytes(method: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    task = didyma.tasks.two_moons()
    found = didyma.infer(task, method=method, out=ours, **QUICK)
    words = "infer two-moons --rounds 2 --simulations 120 --seed 3 --set train.steps=20 --set samples=200"
    command = [*COMMAND, *words.split(), "--method", method, "--out", str(theirs)]
    subprocess.run(command, check=True, capture_output=True)
    for name in ("posterior.csv", "posterior.npz", "round-1.safetensors", "round-2.safetensors"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    subprocess.run(
        [*COMMAND, "sample", str(theirs), "-n", "50", "--seed", "9", "--out", str(tmp_path / "samples.csv")],
        check=True,
        capture_output=True,
    )
    samples = np.loadtxt(tmp_path / "samples.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(samples, found.posterior.sample((50,), seed=9))
    # The parts of a task are the task.
    parts = didyma.infer(task.simulator, task.prior, task.x_o, method=method, **QUICK)
    np.testing.assert_array_equal(parts.posterior.sample((9,), seed=1), found.posterior.sample((9,), seed=1))


def test_an_ensemble_is_the_same_for_any_threads_and_keeps_its_members(tmp_path: Path) -> None:
    found = didyma.infer(noisy_row, prior(), X_O, members=3, threads=2, out=tmp_path / "run", **QUICK)
    alone = didyma.infer(noisy_row, prior(), X_O, members=3, threads=1, **QUICK)
    draws = found.posterior.sample((99,), seed=1)
    np.testing.assert_array_equal(draws, alone.posterior.sample((99,), seed=1))
    np.testing.assert_array_equal(found.posterior.log_prob(draws), alone.posterior.log_prob(draws))
    last = found.summary().to_dict()["rounds"][-1]
    assert len(last["members"]) == 3 and 0 < last["disagreement"] < 1
    with pytest.raises(didyma.RunError, match=r"holds another run \(ensemble.members differ\)"):
        didyma.infer(noisy_row, prior(), X_O, members=2, out=tmp_path / "run", resume=True, **QUICK)
    with pytest.raises(didyma.InputError, match="members is 0.*between 1 and 64"):
        didyma.infer(noisy_row, prior(), X_O, members=0, **QUICK)


def test_threads_do_not_change_a_bit() -> None:
    one = didyma.infer(noisy_row, prior(), X_O, threads=1, **QUICK)
    two = didyma.infer(noisy_row, prior(), X_O, threads=2, **QUICK)
    np.testing.assert_array_equal(one.posterior.sample((99,), seed=1), two.posterior.sample((99,), seed=1))


def test_a_posterior_is_where_it_should_be() -> None:
    # x = theta + noise of sd 0.1, far from the ends of a flat prior: the posterior is N(x_o, 0.1^2).
    found = didyma.infer(noisy_row, prior(), X_O, rounds=2, simulations=500, seed=1, progress=False)
    theta = found.posterior.sample((4000,), seed=1)
    # A third of the posterior's deviation, or of that itself: what 1000 simulations can be asked for, not noise of the
    # sample (0.1/sqrt(4000) = 0.0016).
    np.testing.assert_allclose(theta.mean(axis=0), X_O, atol=0.033)
    np.testing.assert_allclose(theta.std(axis=0), 0.1, atol=0.033)


def test_what_a_result_tells(result: didyma.Result) -> None:
    assert result.finished and Path(result.directory).is_dir()
    text = str(result.summary())
    assert text.startswith("noisy_row by tgrr, seed 3: 2 of 2 rounds, 240 simulations")
    assert "uniform -1 to 1" in text and text == repr(result.summary())
    facts = result.summary().to_dict()
    assert facts["method"] == "tgrr" and len(facts["rounds"]) == 2 and facts["truth"] == [0.2, -0.1]
    assert isinstance(result.summary().warnings, list)
    theta, x = result.simulations()
    assert theta.shape == x.shape == (240, 2)
    assert result.simulations(round=2)[0].shape == (120, 2) and result.failures() == []
    assert result.settings["train.steps"] == "20"
    assert "<table>" in result.summary()._repr_html_() and "Verdict: " in result._repr_html_()
    assert "<svg" in result._repr_html_() and "<table>" in result._repr_html_()


def test_figures_and_reports(result: didyma.Result, tmp_path: Path) -> None:
    figure = result.plot_pairs()
    assert figure.svg.startswith("<svg") and figure._repr_svg_() == figure.svg and figure.title and figure.caption
    figure.save(tmp_path / "pairs.png")
    assert (tmp_path / "pairs.png").read_bytes().startswith(b"\x89PNG")
    figure.save(tmp_path / "pairs.svg")
    result.plot("training").save(tmp_path / "training.svg")
    for calibrated, kind in [(result.plot_ranks(), "ranks"), (result.plot_coverage(), "coverage")]:
        assert calibrated.svg == result.plot(kind).svg and "95 of 100" in calibrated.caption
    with pytest.raises(didyma.InputError, match="local needs(.*)didyma calibrate"):
        result.plot_local()
    with pytest.raises(didyma.InputError, match=r"ends in \.svg or \.png"):
        figure.save(tmp_path / "pairs.pdf")
    with pytest.raises(didyma.InputError, match="there is no plot \"pears\": there are pairs"):
        result.plot("pears")
    with pytest.raises(didyma.InputError, match="predictive needs(.*)simulator=..."):
        result.plot("predictive")
    assert result.plot("predictive", simulator=noisy_row, predictive=100).svg.startswith("<svg")
    plain = Path(result.report(tmp_path / "plain.html")).read_text()
    checked = Path(result.report(tmp_path / "checked.html", simulator=noisy_row, predictive=100)).read_text()
    assert "Verdict: " in plain and "fig-ranks" in plain and "fig-coverage" in plain
    assert "result.report(path, simulator=simulator)" in plain and "result.report(path" not in checked
    assert "fig-predictive" not in plain and "fig-predictive" in checked and "fig-pairs" in plain


def test_reports_of_several(result: didyma.Result, tmp_path: Path) -> None:
    other = didyma.infer(noisy_row, prior(), X_O, method="npe", truth=[0.2, -0.1], **QUICK)
    page = Path(didyma.report([result, other], tmp_path / "both.html")).read_text()
    assert "noisy_row by tgrr, seed 3" in page and "noisy_row by npe, seed 3" in page
    assert "train.steps" not in didyma.plot([result, other], "training").svg, "what is usual for a method tells nothing"
    assert didyma.plot([result, other]).svg.startswith("<svg")


def test_saved_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = didyma.infer(noisy_row, prior(), X_O, **QUICK)
    temporary = Path(found.directory)
    with pytest.raises(didyma.RunError, match="save it first"):
        pickle.dumps(found)
    found.save(tmp_path / "run")
    assert Path(found.directory) == tmp_path / "run" and not temporary.exists()
    assert (tmp_path / "run" / "report.html").is_file()
    with pytest.raises(didyma.RunError, match="already holds a run|holds files of something else"):
        found.save(tmp_path)
    found.save(tmp_path / "run" / "copy")
    assert didyma.Result.load(tmp_path / "run" / "copy").finished
    monkeypatch.chdir(tmp_path)
    relative = didyma.Result.load("run")
    monkeypatch.chdir(tmp_path / "run")
    assert len(relative.simulations()[0]) == 240
    for again in (didyma.Result.load(tmp_path / "run"), pickle.loads(pickle.dumps(found))):
        np.testing.assert_array_equal(again.posterior.sample((9,), seed=1), found.posterior.sample((9,), seed=1))
    theta = didyma.Posterior.load(tmp_path / "run").sample((9,), seed=1)
    np.testing.assert_array_equal(theta, found.posterior.sample((9,), seed=1))
    with pytest.raises(didyma.RunError, match="already holds a run"):
        found.save(tmp_path / "run")
    with pytest.raises(didyma.RunError, match="already holds a run"):
        didyma.infer(noisy_row, prior(), X_O, out=tmp_path / "run", **QUICK)
    # A finished run is there already: what would simulate is not needed, and does no harm.
    assert didyma.resume(tmp_path / "run", progress=False).finished
    with ThreadPoolExecutor(1) as pool:
        assert didyma.resume(tmp_path / "run", noisy_row, executor=pool, progress=False).finished
    again = didyma.infer(noisy_row, prior(), X_O, out=tmp_path / "run", resume=True, **QUICK)
    np.testing.assert_array_equal(again.posterior.sample((9,), seed=1), found.posterior.sample((9,), seed=1))
    with pytest.raises(didyma.RunError, match=r"holds another run \(seed differ\)"):
        didyma.infer(noisy_row, prior(), X_O, out=tmp_path / "run", resume=True, **{**QUICK, "seed": 4})
    # The command line reads it, and says where its simulator is.
    shown = subprocess.run([*COMMAND, "show", str(tmp_path / "run")], check=True, capture_output=True, text=True)
    assert "2 of 2 rounds" in shown.stdout


def test_arviz(result: didyma.Result) -> None:
    pytest.importorskip("arviz", reason="ArviZ is not installed: its data were not tried")
    data = result.to_arviz(500, seed=4)
    theta = result.posterior.sample((500,), seed=4)
    for i, name in enumerate(["a", "b"]):
        assert data.posterior[name].shape == (1, 500)
        np.testing.assert_array_equal(data.posterior[name].values[0], theta[:, i])
    np.testing.assert_array_equal(data.observed_data["x_o"].values, X_O)


def test_levels_of_a_run() -> None:
    found = didyma.infer(
        didyma.tasks.two_moons(), method="tgrr", **{**QUICK, "settings": {"train.steps": 40}, "simulations": 300}
    )
    levels = found.levels(budget=2000)
    assert levels["levels"][0]["level"] == 0 and levels["r2"] > 0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"prior": None}, didyma.InputError, "prior is missing"),
        ({"x_o": None}, didyma.InputError, "x_o is missing"),
        ({"prior": [0, 1]}, didyma.InputError, "prior is of type list: give didyma.Uniform"),
        ({"x_o": [0.1, np.nan]}, didyma.NotFiniteError, "x_o holds NaN at place 1"),
        ({"x_o": [0.1, np.inf]}, didyma.NotFiniteError, "x_o holds inf at place 1"),
        ({"x_o": []}, didyma.ShapeError, "x_o is empty"),
        ({"x_o": ["a", "b"]}, didyma.DtypeError, "x_o is an array of <U1"),
        ({"x_o": [[0, 1], [0, 1]]}, didyma.ShapeError, r"x_o has the shape \(2, 2\)"),
        ({"x_o": [0.1, 0.2, 0.3]}, didyma.SimulatorError, r"shape \(2,\), but \(3,\) is needed"),
        ({"prior": didyma.Uniform([0] * 3, 1)}, didyma.SimulatorError, "AssertionError"),
        ({"simulator": 3}, didyma.InputError, "simulator is of type int: give a function"),
        ({"simulator": lambda theta: None}, didyma.SimulatorError, "returned None: return 2 numbers"),
        ({"simulator": lambda theta: "no"}, didyma.SimulatorError, "returned the text 'no'"),
        ({"simulator": lambda theta: {"x": 1}}, didyma.SimulatorError, "returned a dict"),
        ({"method": "tgr"}, didyma.InputError, "method is \"tgr\": give one of tgrr"),
        ({"profile": "best"}, didyma.InputError, "profile is \"best\""),
        ({"rounds": 0}, didyma.InputError, "rounds is 0"),
        ({"simulations": 0}, didyma.InputError, "simulations is 0"),
        ({"settings": {"train.bach": 1}}, didyma.InputError, "did you mean train.batch"),
        ({"settings": {"train.batch": "many"}}, didyma.InputError, "train.batch cannot be many"),
        ({"truth": [0.1]}, didyma.ShapeError, "truth has 1 numbers, but 2"),
        ({"truth": [0.1, 7]}, didyma.InputError, "truth: b is 7, outside of its prior"),
        ({"summaries": ["one"]}, didyma.ShapeError, "summaries has 1 names"),
        ({"summaries": ["one", "one"]}, didyma.InputError, "summaries has \"one\" twice"),
        ({"summaries": ["one", "t\0wo"]}, didyma.InputError, "the summary .* has a control character"),
        ({"name": "../up"}, didyma.InputError, "the problem's name \"../up\" names folders too"),
        ({"x_o": [1e308, 0]}, didyma.InputError, "x_o holds 1e308, beyond 1e150: give the observation in another unit"),
        ({"threads": 0}, didyma.InputError, "threads"),
        ({"batch_size": 0}, didyma.InputError, "batch_size is 0"),
        ({"executor": 3}, didyma.ExecutorError, "executor is of type int, which has no submit"),
        ({"out": __file__}, didyma.RunError, "is a file, but a run needs a directory"),
    ],
)
def test_what_is_refused(change: dict[str, Any], error: type[Exception], words: str) -> None:
    call: dict[str, Any] = {"simulator": noisy_row, "prior": prior(), "x_o": X_O, **QUICK, **change}
    with pytest.raises(error, match=words) as raised:
        didyma.infer(**call)
    assert isinstance(raised.value, didyma.DidymaError)
    assert "--" not in str(raised.value), "that is of the command line"


@pytest.mark.parametrize("name", ["seed", "rounds", "simulations", "threads", "batch_size"])
@pytest.mark.parametrize("value", [-1, 2.5, "two", 2**70])
def test_seeds_and_counts_are_whole_numbers(name: str, value: Any) -> None:
    with pytest.raises(didyma.InputError, match=f"{name} is .*: give a whole number that is not negative"):
        didyma.infer(noisy_row, prior(), X_O, **{name: value})


def test_odd_names_are_read_back(tmp_path: Path) -> None:
    names = ["v (m/s), \"fast\"", "nan"]
    odd = didyma.Uniform([-1, -1], [1, 1], names=names)
    didyma.infer(noisy_row, odd, X_O, **QUICK, out=tmp_path / "run")
    lines = (tmp_path / "run" / "posterior.csv").read_text().splitlines()
    rows = list(csv.reader(line for line in lines if not line.startswith("#")))
    assert rows[0] == names and len(rows[1]) == 2
    with np.load(tmp_path / "run" / "posterior.npz") as arrays:
        assert [unquote(name) for name in arrays] == names


def test_an_observation_out_of_reach_is_told() -> None:
    found = didyma.infer(noisy_row, prior(), [10.0, 10.0], **QUICK)
    assert "of the observation x1 is 10, where all simulations of the last round are between" in str(found.summary())


def test_settings_and_methods_are_listed() -> None:
    assert didyma.methods()[:2] == ["tgrr", "tsnpe"]
    value, about = didyma.settings()["train.batch"]
    assert int(value) > 0 and about == "outer samples of a step"
    assert didyma.settings(profile="paper")["rounds"][0] == "20"

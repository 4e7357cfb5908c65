"""Types of the compiled part; `python/tests/test_types.py` compares them with it."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from os import PathLike
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__version__: str

_Path: TypeAlias = str | PathLike[str]
_Shape: TypeAlias = int | tuple[int]
_Simulator: TypeAlias = Callable[..., Any] | Task | TaskSimulator
_Executor: TypeAlias = Executor | Callable[[], Executor] | Any
_Settings: TypeAlias = Mapping[str, object]

class Prior:
    @property
    def dim(self) -> int: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def support(self) -> NDArray[np.float64]: ...
    def sample(self, sample_shape: _Shape, *, seed: int | None = None) -> NDArray[np.float64]: ...
    def log_prob(self, theta: ArrayLike) -> NDArray[np.float64]: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    @staticmethod
    def _of_json(json: str) -> Prior: ...

@final
class Uniform(Prior):
    def __new__(cls, low: ArrayLike, high: ArrayLike, *, names: Sequence[str] | str | None = None) -> Uniform: ...

@final
class Normal(Prior):
    def __new__(
        cls,
        mean: ArrayLike,
        sd: ArrayLike,
        *,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        names: Sequence[str] | str | None = None,
    ) -> Normal: ...

@final
class LogNormal(Prior):
    def __new__(
        cls,
        mean: ArrayLike,
        sd: ArrayLike,
        *,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        names: Sequence[str] | str | None = None,
    ) -> LogNormal: ...

@final
class Independent(Prior):
    def __new__(cls, priors: Sequence[Prior]) -> Independent: ...

@final
class Posterior:
    @staticmethod
    def load(path: _Path) -> Posterior: ...
    def save(self, path: _Path) -> None: ...
    @property
    def device(self) -> str: ...
    @property
    def prior(self) -> Prior: ...
    @property
    def x_o(self) -> NDArray[np.float64]: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def dim(self) -> int: ...
    def sample(
        self,
        sample_shape: _Shape,
        x: ArrayLike | None = None,
        *,
        seed: int | None = None,
        points: str = "random",
    ) -> NDArray[np.float64]: ...
    def sample_batched(
        self,
        sample_shape: _Shape,
        x: ArrayLike,
        *,
        seed: int | None = None,
        points: str = "random",
    ) -> NDArray[np.float64]: ...
    def log_prob(self, theta: ArrayLike, x: ArrayLike | None = None) -> NDArray[np.float64]: ...
    def log_prob_batched(self, theta: ArrayLike, x: ArrayLike) -> NDArray[np.float64]: ...
    @staticmethod
    def _of_bytes(bytes: bytes) -> Posterior: ...

@final
class Summary:
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def warnings(self) -> list[str]: ...
    def _repr_html_(self) -> str: ...

@final
class Figure:
    @property
    def title(self) -> str: ...
    @property
    def caption(self) -> str: ...
    @property
    def svg(self) -> str: ...
    def save(self, path: _Path) -> None: ...
    def _repr_svg_(self) -> str: ...

@final
class Result:
    @staticmethod
    def load(directory: _Path) -> Result: ...
    @property
    def posterior(self) -> Posterior: ...
    @property
    def directory(self) -> PathLike[str]: ...
    @property
    def finished(self) -> bool: ...
    @property
    def settings(self) -> dict[str, str]: ...
    @property
    def verdict(self) -> dict[str, Any]: ...
    def calibrate(
        self,
        simulator: Callable[..., Any] | None = None,
        simulations: int | None = None,
        *,
        conformal: bool = False,
        local: bool = True,
        held_out: bool = False,
        executor: _Executor | None = None,
        retry_failed: bool = False,
    ) -> dict[str, Any]: ...
    def summary(self) -> Summary: ...
    def simulations(self, round: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def failures(self) -> list[dict[str, Any]]: ...
    def levels(self, *, budget: int | None = None, seed: int | None = None) -> dict[str, Any]: ...
    def plot_pairs(self) -> Figure: ...
    def plot_ranks(self) -> Figure: ...
    def plot_coverage(self) -> Figure: ...
    def plot_local(self) -> Figure: ...
    def plot(
        self,
        kind: str,
        *,
        simulator: Callable[..., Any] | None = None,
        predictive: int | None = None,
        executor: _Executor | None = None,
    ) -> Figure: ...
    def report(
        self,
        path: _Path,
        *,
        simulator: Callable[..., Any] | None = None,
        predictive: int | None = None,
        executor: _Executor | None = None,
    ) -> PathLike[str]: ...
    def to_arviz(self, samples: int | None = None, *, seed: int | None = None) -> Any: ...
    def save(self, directory: _Path) -> None: ...
    def _repr_html_(self) -> str: ...

@final
class NPE:
    def __new__(
        cls,
        prior: Prior,
        x_o: ArrayLike,
        *,
        method: str | None = None,
        profile: str | None = None,
        seed: int | None = None,
        settings: _Settings | None = None,
        truth: ArrayLike | None = None,
        name: str = "model",
        device: str = "auto",
    ) -> NPE: ...
    @property
    def rounds(self) -> int: ...
    @property
    def device(self) -> str: ...
    def propose(self, n: _Shape | None = None) -> NDArray[np.float64]: ...
    def simulate(
        self,
        simulator: Callable[..., Any],
        theta: ArrayLike,
        *,
        executor: _Executor | None = None,
        vectorized: bool | None = None,
        batch_size: int | None = None,
        progress: bool = True,
    ) -> NDArray[np.float64]: ...
    def append_simulations(
        self, theta: ArrayLike, x: ArrayLike, proposal: Prior | Posterior | None = None
    ) -> NPE: ...
    def train(self, *, threads: int | None = None, progress: bool = True) -> Posterior: ...
    def build_posterior(self, density_estimator: Posterior | None = None) -> Posterior: ...
    def result(self) -> Result: ...
    def save(self, directory: _Path) -> None: ...

@final
class Task:
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def prior(self) -> Prior: ...
    @property
    def simulator(self) -> TaskSimulator: ...
    @property
    def x_o(self) -> NDArray[np.float64]: ...
    @property
    def truth(self) -> NDArray[np.float64] | None: ...
    @property
    def summaries(self) -> list[str]: ...
    @property
    def normalised(self) -> bool: ...
    def reference(self, sample_shape: _Shape, *, seed: int | None = None) -> NDArray[np.float64]: ...
    def log_prob(self, theta: ArrayLike) -> NDArray[np.float64]: ...

@final
class TaskSimulator:
    def __call__(self, theta: ArrayLike, *, seed: int | None = None) -> NDArray[np.float64]: ...
    @staticmethod
    def _of_task(task: Task) -> TaskSimulator: ...

@final
class Toy:
    def __new__(cls, name: str) -> Toy: ...
    @property
    def name(self) -> str: ...
    @property
    def phi(self) -> list[float]: ...
    @property
    def loss(self) -> float: ...
    @property
    def gradient(self) -> list[float]: ...
    def estimate(
        self,
        method: str,
        *,
        batch: int | None = None,
        batches: int | None = None,
        seed: int | None = None,
        settings: _Settings | None = None,
    ) -> dict[str, Any]: ...
    def levels(
        self,
        method: str = "tgrr",
        *,
        levels: int | None = None,
        budget: int | None = None,
        seed: int | None = None,
        settings: _Settings | None = None,
    ) -> dict[str, Any]: ...

def infer(
    simulator: _Simulator,
    prior: Prior | None = None,
    x_o: ArrayLike | None = None,
    *,
    rounds: int | None = None,
    simulations: int | None = None,
    method: str | None = None,
    profile: str | None = None,
    members: int | None = None,
    seed: int | None = None,
    settings: _Settings | None = None,
    out: _Path | None = None,
    resume: bool = False,
    executor: _Executor | None = None,
    vectorized: bool | None = None,
    batch_size: int | None = None,
    truth: ArrayLike | None = None,
    name: str | None = None,
    summaries: Sequence[str] | str | None = None,
    threads: int | None = None,
    device: str = "auto",
    progress: bool = True,
) -> Result: ...
def resume(
    directory: _Path,
    simulator: Callable[..., Any] | None = None,
    *,
    executor: _Executor | None = None,
    vectorized: bool | None = None,
    batch_size: int | None = None,
    retry_failed: bool = False,
    threads: int | None = None,
    device: str = "auto",
    progress: bool = True,
) -> Result: ...
def report(results: Sequence[Result], path: _Path) -> PathLike[str]: ...
def plot(results: Sequence[Result], kind: str = "pairs") -> Figure: ...
def settings(method: str | None = None, profile: str | None = None) -> dict[str, tuple[str, str]]: ...
def methods() -> list[str]: ...
def devices() -> dict[str, Any]: ...
def task(name: str) -> Task: ...
def task_names() -> list[str]: ...
def load_problem(path: _Path) -> Task: ...
def c2st(
    reference: ArrayLike,
    samples: ArrayLike,
    *,
    seeds: int | None = None,
    folds: int | None = None,
    seed: int | None = None,
) -> float: ...
def c2st_with_error(
    reference: ArrayLike,
    samples: ArrayLike,
    *,
    seeds: int | None = None,
    folds: int | None = None,
    seed: int | None = None,
) -> tuple[float, float]: ...
def mmd2(reference: ArrayLike, samples: ArrayLike) -> float: ...
def sliced_wasserstein(
    reference: ArrayLike, samples: ArrayLike, *, projections: int | None = None, seed: int | None = None
) -> float: ...
def median_distance(x: ArrayLike, x_o: ArrayLike, *, scale: ArrayLike | None = None) -> float: ...
def misspecification(x: ArrayLike, x_o: ArrayLike) -> tuple[float, float, list[int]]: ...
def calibration_uniformity(values: ArrayLike) -> dict[str, Any]: ...
def calibration_bands(rows: int, points: int = 100, level: float = 0.95) -> dict[str, Any]: ...
def calibration_ranks(theta: ArrayLike, draws: ArrayLike, *, seed: int | None = None) -> dict[str, Any]: ...
def calibration_score_ranks(scores: ArrayLike, draws: ArrayLike, *, seed: int | None = None) -> dict[str, Any]: ...
def calibration_coverage(region_levels: ArrayLike, levels: ArrayLike | None = None) -> dict[str, Any]: ...
def calibration_tarp(
    theta: ArrayLike,
    draws: ArrayLike,
    references: ArrayLike | None = None,
    *,
    bins: int | None = None,
    seed: int | None = None,
) -> dict[str, Any]: ...
def calibration_local(
    theta: ArrayLike,
    x: ArrayLike,
    draws: ArrayLike | None,
    x_o: ArrayLike,
    evaluation: ArrayLike,
    *,
    folds: int = 1,
    ensemble: int = 1,
    trials: int = 100,
    seed: int | None = None,
) -> list[dict[str, Any]]: ...
def calibration_level(region_levels: ArrayLike, coverage: float) -> float: ...
def toy_names() -> list[str]: ...
def alpha(
    method: str, r2: float, *, base_variance: float = 1.0, settings: _Settings | None = None
) -> dict[str, Any]: ...
def command_line(program: list[str], arguments: list[str]) -> int: ...

"""Ray as an executor: `import didyma.ray`, then `executor=didyma.ray.RayExecutor()`. Needs `pip install ray`."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any, Callable


class RayExecutor(Executor):
    """Runs each task on the Ray cluster that is connected, or on one of this machine; options as `num_cpus=1`."""

    def __init__(self, **options: Any) -> None:
        import ray

        if not ray.is_initialized():
            ray.init()
        self._max_workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._run = ray.remote(**options)(_run) if options else ray.remote(_run)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = self._run.remote(fn, args, kwargs).future()
        return future


def _run(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)

"""The ten tasks of sbibm, written anew: the definitions are sbibm's, the code is not."""

from __future__ import annotations

from . import gaussian, glm, moons, populations, slcp
from .base import Array, Task

#: Tasks by name, in the order of sbibm's paper.
TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        *gaussian.TASKS[:2],
        *slcp.TASKS,
        *glm.TASKS,
        gaussian.TASKS[2],
        *moons.TASKS,
        *populations.TASKS,
    )
}

__all__ = ["TASKS", "Array", "Task"]

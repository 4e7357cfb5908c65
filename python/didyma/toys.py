"""The estimators themselves: Gaussian problems whose loss is known exactly, and the rates of their levels.

>>> toy = didyma.toys.Toy("benign")
>>> toy.loss, toy.estimate("rr", settings={"top": 10})["loss"]
>>> toy.levels("tgrr")["r2"]
"""

from didyma._didyma import Toy, alpha, toy_names

__all__ = ["Toy", "alpha", "toy_names"]

"""How far samples are from a reference.

>>> didyma.metrics.c2st(reference, samples)  # 0.5: a classifier cannot tell them apart
>>> mean, error = didyma.metrics.c2st_with_error(reference, samples)  # over four classifier seeds
"""

from didyma._didyma import c2st, c2st_with_error, median_distance, mmd2, sliced_wasserstein

#: The square is what is estimated; sbi calls it so.
mmd = mmd2

__all__ = ["c2st", "c2st_with_error", "median_distance", "mmd", "mmd2", "sliced_wasserstein"]

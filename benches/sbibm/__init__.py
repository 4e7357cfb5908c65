"""The public benchmark of simulation-based inference, sbibm (Lueckmann et al. 2021), for didyma: see docs/benchmark.md."""

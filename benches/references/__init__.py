"""References of tasks without a likelihood, by two routes: flows of the posterior, and flows of the likelihood."""

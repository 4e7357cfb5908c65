"""A worker for Didyma: reads requests, simulates, answers. Both are JSON, one object a line:

    {"id":7,"seed":1234567890123,"theta":[2.0,0.7]}      a request on standard input
    {"id":7,"x":[2.07,1.39,0.99,0.48,0.14]}              its answer on standard output
    {"id":7,"error":"the solver did not converge"}       or why there is none

theta has the parameters in the order of problem.toml, x the summaries. Put your simulator into `simulate`; what follows
can stay as it is.
"""

import json
import math
import random
import sys

TIMES = [0, 0.5, 1, 2, 4]
NOISE = 0.1


# ==== Your simulator ==================================================================================================
def simulate(theta, seed):
    """The summaries at these parameters. All randomness has to come from the seed: the same seed, the same summaries."""
    amplitude, rate = theta
    generator = random.Random(seed)  # or numpy.random.default_rng(seed)
    return [amplitude * math.exp(-rate * t) + generator.gauss(0, NOISE) for t in TIMES]


# ======================================================================================================================


def answer(request):
    try:
        x = simulate(request["theta"], request["seed"])
        return {"id": request["id"], "x": [float(value) for value in x]}
    except Exception as error:
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}


def main():
    answers, sys.stdout = sys.stdout, sys.stderr  # so that print() in a simulator does no harm
    for line in sys.stdin:
        requests = json.loads(line)  # a list of them with `batch` in problem.toml
        for request in requests if isinstance(requests, list) else [requests]:
            print(json.dumps(answer(request)), file=answers, flush=True)


if __name__ == "__main__":
    main()

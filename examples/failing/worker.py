"""A simulator that fails more often for some parameters than for others: a third of the prior's draws.

x = theta + N(0, 1) in two dimensions. With the prior N(0, 1) the posterior at x_o is known: N(x_o / 2, 1/2). The simulator
crashes with probability 1 - s(theta), s = 0.1 + 0.9 / (1 + exp(-(4 theta_1 + 1.4))), without looking at x.
"""
import json
import math
import random
import sys

for line in sys.stdin:
    request = json.loads(line)
    noise = random.Random(request["seed"])
    a, b = request["theta"]
    if noise.random() > 0.1 + 0.9 / (1 + math.exp(-(4 * a + 1.4))):
        answer = {"id": request["id"], "error": "the solver did not converge"}
    else:
        answer = {"id": request["id"], "x": [a + noise.gauss(0, 1), b + noise.gauss(0, 1)]}
    print(json.dumps(answer), flush=True)

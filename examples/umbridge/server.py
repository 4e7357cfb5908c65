"""An UM-Bridge model: exponential decay with noise, whose seed comes in the config.

    pip install umbridge
    python3 server.py          (listens on port 4242, or on the one that is given)
"""
import math
import random
import sys

import umbridge

TIMES = [0.0, 0.5, 1.0, 2.0, 4.0]


class Decay(umbridge.Model):
    def __init__(self):
        super().__init__("decay")

    def get_input_sizes(self, config):
        return [1, 1]  # two vectors of one number each: amplitude and rate

    def get_output_sizes(self, config):
        return [len(TIMES)]

    def __call__(self, parameters, config):
        [amplitude], [rate] = parameters
        if amplitude > 4.9:
            raise ValueError("the amplitude is too large")
        if rate < 0.2:
            return [[math.nan] * len(TIMES)]
        noise = random.Random(config["seed"])
        return [[amplitude * math.exp(-rate * t) + noise.gauss(0, 0.1) for t in TIMES]]

    def supports_evaluate(self):
        return True


umbridge.serve_models([Decay()], int(sys.argv[1]) if len(sys.argv) > 1 else 4242)

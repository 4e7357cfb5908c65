#!/usr/bin/env python3
"""M/G/1, a queue with one server, as a worker of Didyma (didyma::simulator::program::Call::Worker with `stream`).

A worker reads requests from its standard input, one JSON object (or an array of them) a line, and writes an answer for each
to its standard output. This one draws the very random numbers of Didyma's own M/G/1, from the state of the
generator in "stream", so that its summaries are the same to the last bit. A worker that need not be equal to anything
takes "seed" instead: random.Random(request["seed"]) or numpy.random.default_rng(request["seed"]).
"""

import json
import math
import sys

MASK = (1 << 64) - 1
JOBS = 50


class Stream:
    """xoshiro256++ (Blackman and Vigna), from four words of 64 bits."""

    def __init__(self, words):
        self.s = [int(word, 16) for word in words]

    def next_u64(self):
        s = self.s
        total = (s[0] + s[3]) & MASK
        result = (((total << 23) | (total >> 41)) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = ((s[3] << 45) | (s[3] >> 19)) & MASK
        return result

    def uniform(self):
        """On [0, 1): the upper 53 bits."""
        return (self.next_u64() >> 11) * 2.0**-53

    def exponential(self):
        """Of mean 1, by the ziggurat of Rust's rand_distr (after Doornik 2005)."""
        while True:
            bits = self.next_u64()
            i = bits & 0xFF
            # The upper 52 bits, in (0, 1).
            u = (1.0 + (bits >> 12) * 2.0**-52) - (1.0 - 2.0**-53)
            x = u * ZIGGURAT_X[i]
            if x < ZIGGURAT_X[i + 1]:
                return x
            if i == 0:
                return ZIGGURAT_R - math.log(self.uniform())
            f0, f1 = ZIGGURAT_F[i], ZIGGURAT_F[i + 1]
            if f1 + (f0 - f1) * self.uniform() < math.exp(-x):
                return x


def ziggurat():
    """256 layers of equal area under exp(-x): their right ends and the density there.

    rand_distr prints its tables with 18 digits after the point, and so do we.
    """
    r, area = 7.69711747013104972, 0.0039496598225815571993
    x = [area / math.exp(-r), r]
    while len(x) < 256:
        x.append(-math.log(area / x[-1] + math.exp(-x[-1])))
    x.append(0.0)
    rounded = lambda values: [float("%.18f" % value) for value in values]
    return rounded(x), rounded(math.exp(-value) for value in x)


ZIGGURAT_X, ZIGGURAT_F = ziggurat()
ZIGGURAT_R = ZIGGURAT_X[1]


def mg1(theta, stream):
    """Logarithms of the quartiles of the times between departures."""
    least, width, rate = theta
    pause = 1.0 / max(rate, sys.float_info.min)
    arrival = departure = 0.0
    between = []
    for _ in range(JOBS):
        arrival += stream.exponential() * pause
        service = least + width * stream.uniform()
        between.append(service + max(arrival - departure, 0.0))
        departure += between[-1]
    y = sorted(between)
    # The places 12 1/4, 24 1/2 and 36 3/4 of 0 to 49.
    quartiles = [
        y[0],
        y[12] + 0.25 * (y[13] - y[12]),
        0.5 * (y[24] + y[25]),
        y[36] + 0.75 * (y[37] - y[36]),
        y[49],
    ]
    return [math.log(value) for value in quartiles]


def answer(request):
    try:
        return {"id": request["id"], "x": mg1(request["theta"], Stream(request["stream"]))}
    except Exception as error:
        return {"id": request["id"], "error": repr(error)}


if __name__ == "__main__":
    for line in sys.stdin:
        requests = json.loads(line)
        if isinstance(requests, list):
            print(json.dumps([answer(request) for request in requests]), flush=True)
        else:
            print(json.dumps(answer(requests)), flush=True)

/* The Lotka-Volterra task once more, as plainly as it can be written: means and standard deviations of the nine
 * summaries at the true parameters, for tests/runs/tasks.rs.
 *
 *   gcc -O2 -o lotka_volterra lotka_volterra.c -lm && ./lotka_volterra 100000 1
 *   mean 4.4628 3.7500 8.4281 7.7559 0.9861 0.9427 0.9771 0.9187 0.1013
 *   sd 0.3218 0.5357 0.6255 0.9463 0.0091 0.0221 0.0099 0.0214 0.1800
 *   events 5382.7, at the cap 0.0080, one species extinct 0.476
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 151, CAP = 10000 };

static uint64_t s[4];

static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static double uniform(void) {
    uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return ((result >> 11) + 0.5) / 9007199254740992.0;
}

int main(int argc, char **argv) {
    int runs = atoi(argv[1]), capped = 0, extinct = 0;
    double sum[9] = {0}, square[9] = {0}, events = 0;
    s[0] = atoi(argv[2]) * 7919 + 1, s[1] = 2, s[2] = 3, s[3] = 4;
    for (int i = 0; i < 100; i++) uniform();
    for (int run = 0; run < runs; run++) {
        double state[2] = {50, 100}, series[2][POINTS], t = 0, S[9];
        int j = 0, n = 0;
        while (j < POINTS) {
            double x = state[0], y = state[1];
            double a1 = 0.01 * x * y, a2 = a1 + 0.5 * x, a3 = a2 + y, total = a3 + 0.01 * x * y;
            int frozen = total == 0 || n == CAP;
            t += frozen ? INFINITY : -log(uniform()) / total;
            for (; j < POINTS && j * 0.2 < t; j++) series[0][j] = x, series[1][j] = y;
            if (j == POINTS) {
                capped += n == CAP;
                break;
            }
            double place = uniform() * total;
            if (place < a1) state[0]++;
            else if (place < a2) state[0]--;
            else if (place < a3) state[1]++;
            else state[1]--;
            n++;
        }
        events += n;
        extinct += state[0] == 0 || state[1] == 0;
        for (int k = 0; k < 2; k++) {
            double mean = 0, variance = 0, *v = series[k], one = 0, two = 0;
            for (int i = 0; i < POINTS; i++) mean += v[i] / POINTS;
            for (int i = 0; i < POINTS; i++) variance += (v[i] - mean) * (v[i] - mean) / POINTS;
            variance += 1e-4;
            for (int i = 0; i < POINTS; i++) v[i] = (v[i] - mean) / sqrt(variance);
            for (int i = 0; i + 1 < POINTS; i++) one += v[i] * v[i + 1] / 150;
            for (int i = 0; i + 2 < POINTS; i++) two += v[i] * v[i + 2] / 150;
            S[k] = log(mean + 1), S[2 + k] = log(variance + 1), S[4 + 2 * k] = one, S[5 + 2 * k] = two;
        }
        S[8] = 0;
        for (int i = 0; i < POINTS; i++) S[8] += series[0][i] * series[1][i] / 150;
        for (int k = 0; k < 9; k++) sum[k] += S[k], square[k] += S[k] * S[k];
    }
    printf("mean");
    for (int k = 0; k < 9; k++) printf(" %.4f", sum[k] / runs);
    printf("\nsd");
    for (int k = 0; k < 9; k++) printf(" %.4f", sqrt((square[k] - sum[k] * sum[k] / runs) / (runs - 1)));
    printf("\nevents %.1f, at the cap %.4f, one species extinct %.3f\n", events / runs, (double)capped / runs,
           (double)extinct / runs);
}

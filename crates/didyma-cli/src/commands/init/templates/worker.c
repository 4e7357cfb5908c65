/* A worker for Didyma: reads requests, simulates, answers. Both are JSON, one object a line:
 *
 *     {"id":7,"seed":1234567890123,"theta":[2.0,0.7]}      a request on standard input
 *     {"id":7,"x":[2.07,1.39,0.99,0.48,0.14]}              its answer on standard output
 *     {"id":7,"error":"the solver did not converge"}       or why there is none
 *
 * theta has the parameters in the order of problem.toml, x the summaries. Put your simulator into `simulate`; what
 * follows can stay as it is. Compile with: cc -O2 -o worker worker.c -lm */

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMETERS = 2, SUMMARIES = 5 };

static double normal(uint64_t *state);

/* ==== Your simulator ============================================================================================== */
/* Fills in the summaries at these parameters. All randomness has to come from the seed: the same seed, the same
 * summaries. Returns NULL, or why there are none. */
static const char *simulate(const double theta[PARAMETERS], uint64_t seed, double x[SUMMARIES])
{
    static const double times[SUMMARIES] = {0, 0.5, 1, 2, 4};
    const double amplitude = theta[0], rate = theta[1], noise = 0.1;
    uint64_t state = seed;
    for (int i = 0; i < SUMMARIES; i++)
        x[i] = amplitude * exp(-rate * times[i]) + noise * normal(&state);
    return NULL;
}
/* ================================================================================================================== */

/* SplitMix64: a number above 0 and below 1. */
static double uniform(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    z ^= z >> 31;
    return ((double)(z >> 12) + 0.5) / 4503599627370496.0;
}

/* A standard normal number, by Box and Muller. */
static double normal(uint64_t *state)
{
    const double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* What comes after a key. Requests always have the same form, so that nothing more is needed. */
static char *field(char *request, const char *key)
{
    char *found = strstr(request, key);
    return found ? found + strlen(key) : NULL;
}

/* Reads the parameters: whether there are so many numbers, and no more. */
static int numbers(char *text, double theta[PARAMETERS])
{
    for (int i = 0; i < PARAMETERS; i++) {
        char *end;
        theta[i] = strtod(text, &end);
        if (end == text || *end != (i + 1 < PARAMETERS ? ',' : ']'))
            return 0;
        text = end + 1;
    }
    return 1;
}

static void answer(char *request)
{
    double theta[PARAMETERS], x[SUMMARIES];
    char *id = field(request, "\"id\":"), *seed = field(request, "\"seed\":");
    char *list = field(request, "\"theta\":");
    const char *error = "the request has another form";
    if (id && seed && list && (list = strchr(list, '['))) {
        error = "theta is not made of as many numbers as there are parameters";
        if (numbers(list + 1, theta))
            error = simulate(theta, strtoull(seed, NULL, 10), x);
    }
    printf("{\"id\":%lld,", id ? strtoll(id, NULL, 10) : -1);
    if (error)
        printf("\"error\":\"%s\"}\n", error);
    for (int i = 0; !error && i < SUMMARIES; i++)
        printf("%s%.17g%s", i ? "," : "\"x\":[", x[i], i + 1 < SUMMARIES ? "" : "]}\n");
    fflush(stdout);
}

int main(void)
{
    char *line = NULL, *end;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0) {
        /* One request, or a list of them with `batch` in problem.toml. */
        for (char *request = line; (request = strchr(request, '{')) && (end = strchr(request, '}')); request = end + 1) {
            *end = '\0';
            answer(request);
        }
    }
    free(line);
    return 0;
}

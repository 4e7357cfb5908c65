#!/bin/sh
# A worker for Didyma: reads requests, simulates, answers. Both are JSON, one object a line:
#
#     {"id":7,"seed":1234567890123,"theta":[2.0,0.7]}      a request on standard input
#     {"id":7,"x":[2.07,1.39,0.99,0.48,0.14]}              its answer on standard output
#     {"id":7,"error":"the solver did not converge"}       or why there is none
#
# theta has the parameters in the order of problem.toml, x the summaries. Put your simulator into `simulate`; what
# follows can stay as it is. A program that takes its parameters as arguments needs no worker: see `run` in problem.toml.

# ==== Your simulator ==================================================================================================
# simulate SEED PARAMETER...: prints the summaries in one line, with commas between them. All randomness has to come from
# the seed: the same seed, the same summaries. If it fails (exit code other than 0), what it prints is the reason.
simulate() {
    if [ $# != 3 ]; then
        echo "theta has $(($# - 1)) numbers, not 2"
        return 1
    fi
    awk -v seed="$1" -v amplitude="$2" -v rate="$3" '
        function is_number(text) { return text ~ /^-?[0-9.]+([eE][-+]?[0-9]+)?$/ }
        # A number above 0 and below 1: two congruential generators, combined. The rand() of awk takes only
        # a part of the seed, and not the same in every awk.
        function uniform() {
            first = 40014 * first % 2147483563
            second = 40692 * second % 2147483399
            return ((first - second + 2147483562) % 2147483562 + 0.5) / 2147483562
        }
        function normal() { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()) }
        # Keeps seeds apart that are near each other, in whole numbers below 2^53.
        function square(number) { return number % 67108864 * (number % 67108859) }
        BEGIN {
            if (!is_number(amplitude) || !is_number(rate)) {
                print "theta is not made of numbers: " amplitude ", " rate
                exit 1
            }
            first = seed % 2147483562
            second = seed % 2147483398
            for (i = 0; i < 4; i++) {
                first = (first + square(second)) % 2147483562 + 1
                second = (second + square(first)) % 2147483398 + 1
            }
            n = split("0 0.5 1 2 4", times, " ")
            for (i = 1; i <= n; i++) {
                x = amplitude * exp(-rate * times[i]) + 0.1 * normal()
                printf "%s%.17g", (i > 1 ? "," : ""), x
            }
        }'
}
# ======================================================================================================================

# answer REQUEST: takes it apart. Requests always have the same form, so that nothing more is needed.
answer() {
    id=${1#*\"id\":} seed=${1#*\"seed\":} theta=${1#*\"theta\":*\[}
    id=${id%%,*} seed=${seed%%,*} theta=${theta%%\]*}
    set -f
    IFS=', '
    # shellcheck disable=SC2086 # a word for each number
    set -- $seed $theta
    unset IFS
    if x=$(simulate "$@" 2>&1); then
        printf '{"id":%s,"x":[%s]}\n' "$id" "$x"
    else
        printf '{"id":%s,"error":"%s"}\n' "$id" "$(printf %s "$x" | tr '"\\\t\n' '    ')"
    fi
}

while IFS= read -r line; do
    # One request, or a list of them with `batch` in problem.toml.
    while [ "$line" != "${line#*\}}" ]; do
        answer "${line%%\}*}"
        line=${line#*\}}
    done
done

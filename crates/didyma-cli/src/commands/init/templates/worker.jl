# A worker for Didyma: reads requests, simulates, answers. Both are JSON, one object a line:
#
#     {"id":7,"seed":1234567890123,"theta":[2.0,0.7]}      a request on standard input
#     {"id":7,"x":[2.07,1.39,0.99,0.48,0.14]}              its answer on standard output
#     {"id":7,"error":"the solver did not converge"}       or why there is none
#
# theta has the parameters in the order of problem.toml, x the summaries. Put your simulator into `simulate`; what
# follows can stay as it is, and needs no package.

using Random

const TIMES = [0, 0.5, 1, 2, 4]
const NOISE = 0.1

# ==== Your simulator ==================================================================================================
"The summaries at these parameters. All randomness has to come from the seed: the same seed, the same summaries."
function simulate(theta, seed)
    length(theta) == 2 || error("theta has $(length(theta)) numbers, not 2")
    amplitude, rate = theta
    generator = MersenneTwister(seed)
    return [amplitude * exp(-rate * t) + NOISE * randn(generator) for t in TIMES]
end
# ======================================================================================================================

"What a field of a request holds, as text. Requests always have the same form, so that nothing more is needed."
function field(request, pattern)
    found = match(pattern, request)
    found === nothing && error("the request has another form: $request")
    return found.captures[1]
end

function answer(request)
    id = field(request, r"\"id\": *([0-9]+)")
    try
        seed = parse(Int64, field(request, r"\"seed\": *([0-9]+)"))
        theta = [parse(Float64, n) for n in split(field(request, r"\"theta\": *\[([^\]]*)\]"), ',')]
        x = join((Float64(value) for value in simulate(theta, seed)), ',')
        return "{\"id\":$id,\"x\":[$x]}"
    catch problem
        reason = replace(sprint(showerror, problem), r"[\"\\[:cntrl:]]" => " ")
        return "{\"id\":$id,\"error\":\"$reason\"}"
    end
end

function main()
    for line in eachline(stdin)
        # One request, or a list of them with `batch` in problem.toml.
        for request in eachmatch(r"\{[^}]*\}", line)
            println(answer(request.match))
            flush(stdout)
        end
    end
end

main()

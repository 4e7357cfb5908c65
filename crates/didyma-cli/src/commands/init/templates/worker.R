# A worker for Didyma: reads requests, simulates, answers. Both are JSON, one object a line:
#
#     {"id":7,"seed":1234567890123,"theta":[2.0,0.7]}      a request on standard input
#     {"id":7,"x":[2.07,1.39,0.99,0.48,0.14]}              its answer on standard output
#     {"id":7,"error":"the solver did not converge"}       or why there is none
#
# theta has the parameters in the order of problem.toml, x the summaries. Put your simulator into `simulate`; what
# follows can stay as it is, and needs no package.

times <- c(0, 0.5, 1, 2, 4)
noise <- 0.1

# ==== Your simulator ==================================================================================================
# The summaries at these parameters. All randomness has to come from the seed: the same seed, the same summaries.
simulate <- function(theta, seed) {
  if (length(theta) != 2) stop("theta has ", length(theta), " numbers, not 2")
  amplitude <- theta[1]
  rate <- theta[2]
  set.seed(seed)
  amplitude * exp(-rate * times) + rnorm(length(times), 0, noise)
}
# ======================================================================================================================

# The same numbers in every version of R.
RNGkind("Mersenne-Twister", "Inversion", "Rejection")

# set.seed takes 32 bits, and a seed has 53.
fold <- function(seed) as.integer((seed %% 2147483647 + seed %/% 2147483647) %% 2147483647)

# What a field of a request holds, as text. Requests always have the same form, so that nothing more is needed.
field <- function(request, pattern) {
  found <- regmatches(request, regexec(pattern, request))[[1]]
  if (length(found) != 2) stop("the request has another form: ", request)
  found[2]
}

numbers <- function(text) {
  values <- suppressWarnings(as.numeric(strsplit(text, ",")[[1]]))
  if (anyNA(values)) stop("theta is not made of numbers: ", text)
  values
}

answer <- function(request) {
  id <- field(request, '"id": *([0-9]+)')
  tryCatch({
    theta <- numbers(field(request, '"theta": *\\[([^]]*)\\]'))
    x <- as.numeric(simulate(theta, fold(as.numeric(field(request, '"seed": *([0-9]+)')))))
    x[is.na(x)] <- NaN
    sprintf('{"id":%s,"x":[%s]}', id, paste(sprintf("%.17g", x), collapse = ","))
  }, error = function(problem) {
    reason <- gsub('["\\\\[:cntrl:]]', " ", conditionMessage(problem))
    sprintf('{"id":%s,"error":"%s"}', id, reason)
  })
}

input <- file("stdin", open = "r")
while (length(line <- readLines(input, n = 1)) > 0) {
  # One request, or a list of them with `batch` in problem.toml.
  for (request in regmatches(line, gregexpr("\\{[^}]*\\}", line))[[1]]) {
    cat(answer(request), "\n", sep = "")
    flush(stdout())
  }
}

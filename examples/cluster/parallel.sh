#!/usr/bin/env bash
# A run whose simulations are made by GNU parallel: on this machine, or by ssh on others that share its files. Options for
# it go into the environment, as PARALLEL="--jobs 8" or PARALLEL="--sshlogin node1,node2". Start it again after an
# interruption.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

# ---- Settings --------------------------------------------------------------------------------------------------------
PROBLEM=${PROBLEM:-$here/problem.toml} # the problem file, which all machines can read
RUN=${RUN:-run}                        # the run's folder; shards are in RUN.shards, which all machines can write
SHARDS=${SHARDS:-4}                    # jobs of a round
# ----------------------------------------------------------------------------------------------------------------------

# The log numbers jobs by their place in the list, so that the list is always the whole one; what is done is left out.
shards() {
    seq "$SHARDS" | parallel --quote --env DIDYMA --joblog "$2/jobs.log" --resume-failed --retries 3 \
        bash "$here/shard.sh" "$PROBLEM" "$1" "$SHARDS" "$2" '{}'
}

# shellcheck source=rounds.sh
. "$here/rounds.sh"

#!/usr/bin/env bash
# A run whose simulations are made by Slurm: an array of jobs for each round. Start it where sbatch works and training is
# allowed, for example in a job of its own, and again after an interruption. Options for the jobs go into the environment
# (SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT, …) or into shard.sh.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

# ---- Settings --------------------------------------------------------------------------------------------------------
PROBLEM=${PROBLEM:-$here/problem.toml} # the problem file, which all nodes can read
RUN=${RUN:-run}                        # the run's folder; shards are in RUN.shards, which all nodes can write
SHARDS=${SHARDS:-4}                    # jobs of a round
# ----------------------------------------------------------------------------------------------------------------------

# Jobs of a driver that ends early would go on for nobody.
name=didyma-$HOSTNAME-$$
trap 'scancel --quiet --name="$name" || true' EXIT

shards() {
    sbatch --wait --quiet --array="$3" --job-name="$name" --output="$2/job-%a.log" \
        "$here/shard.sh" "$PROBLEM" "$1" "$SHARDS" "$2"
}

# shellcheck source=rounds.sh
. "$here/rounds.sh"

#!/usr/bin/env bash
# A run whose simulations are made by HyperQueue: an array of tasks for each round. Needs a server (`hq server start`) and
# workers (`hq worker start`, or `hq alloc add slurm …`). Start it again after an interruption.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

# ---- Settings --------------------------------------------------------------------------------------------------------
PROBLEM=${PROBLEM:-$here/problem.toml} # the problem file, which all workers can read
RUN=${RUN:-run}                        # the run's folder; shards are in RUN.shards, which all workers can write
SHARDS=${SHARDS:-4}                    # tasks of a round
# ----------------------------------------------------------------------------------------------------------------------

# Tasks whose shard is there already end at once.
shards() {
    hq submit --wait --array="1-$SHARDS" --name=didyma --cpus=1 --env="DIDYMA=$DIDYMA" \
        --stdout="$2/task-%{TASK_ID}.log" --stderr="$2/task-%{TASK_ID}.err" \
        -- bash "$here/shard.sh" "$PROBLEM" "$1" "$SHARDS" "$2"
}

# shellcheck source=rounds.sh
. "$here/rounds.sh"

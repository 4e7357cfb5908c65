#!/usr/bin/env bash
# Simulates one shard of a round, as a job of its own: shard.sh PROBLEM PROPOSAL SHARDS FOLDER [NUMBER]
# Without a number it is that of a Slurm or HyperQueue task. Leaves FOLDER/shard-NUMBER.db, or what there was time for in
# FOLDER/part-NUMBER.db, from where the next try goes on.
#
# What Slurm is asked for; the shell is told a minute before the time is over.
#SBATCH --time=1:00:00
#SBATCH --cpus-per-task=1
#SBATCH --signal=B:TERM@60
set -euo pipefail
problem=$1 proposal=$2 shards=$3 folder=$4
number=${5:-${SLURM_ARRAY_TASK_ID:-${HQ_TASK_ID:?give the number of the shard}}}
whole=$folder/shard-$number.db
part=$folder/part-$number.db
[ ! -e "$whole" ] || exit 0

# On the node's own disk, since SQLite does not work well on those of a network; then copied there in one step.
own=$(mktemp -d "${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/didyma-shard.XXXXXX")
trap 'rm -rf "$own"' EXIT
keep() { cp "$own/shard.db" "$1.$HOSTNAME.$$" && mv "$1.$HOSTNAME.$$" "$1"; }
[ ! -e "$part" ] || cp "$part" "$own/shard.db"

"${DIDYMA:-didyma}" simulate "$problem" --proposal "$proposal" --shard "$number/$shards" \
    --threads "${SLURM_CPUS_PER_TASK:-1}" ${RETRY_FAILED:+--retry-failed} --out "$own/shard.db" &
simulation=$!
trap 'kill -TERM "$simulation" 2>/dev/null || true' TERM INT
status=0
wait "$simulation" || status=$?
# A signal ends the waiting, but not the simulation, which has to store what it has.
if kill -0 "$simulation" 2>/dev/null; then
    status=0
    wait "$simulation" || status=$?
fi
if [ "$status" = 0 ]; then
    keep "$whole"
    rm -f "$part"
elif [ -e "$own/shard.db" ] && [ ! -s "$own/shard.db-wal" ]; then
    # Where there is a log, the simulation was killed, and the file without it may be neither old nor new.
    keep "$part"
fi
exit "$status"

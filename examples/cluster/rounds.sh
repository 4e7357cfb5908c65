# shellcheck shell=bash
# Carries a run through, round after round; slurm.sh, hyperqueue.sh and parallel.sh read this file. They set PROBLEM, RUN,
# SHARDS and `here`, and say how shards are made: shards PROPOSAL FOLDER NUMBERS, the numbers as 1,2,5.
#
# Whatever ended the last try, the same command goes on: shards that are done stay, and training goes on where it was.

DIDYMA=$(command -v "${DIDYMA:-didyma}") || {
    echo "didyma is not on the PATH: cargo install --path crates/didyma-cli, or set DIDYMA" >&2
    exit 2
}
export DIDYMA
PROBLEM=$(realpath "$PROBLEM")
mkdir -p "$(dirname "$RUN")"
RUN=$(realpath "$(dirname "$RUN")")/$(basename "$RUN")

# What there is of the run: nothing if it has not begun, also where a kill left its folder.
state() { "$DIDYMA" show "$RUN" --json 2>/dev/null || true; }

# The numbers of the shards that a folder lacks, as 1,2,5.
missing() {
    local number
    for number in $(seq "$SHARDS"); do
        [ -e "$1/shard-$number.db" ] || echo "$number"
    done | paste -sd, -
}

# Makes what is missing, in three tries.
make_shards() {
    local proposal=$1 folder=$2 try numbers
    mkdir -p "$folder"
    for try in 1 2 3; do
        numbers=$(missing "$folder")
        [ -n "$numbers" ] || return 0
        [ "$try" = 1 ] || echo "shards $numbers are missing: trying again" >&2
        shards "$proposal" "$folder" "$numbers" || true
    done
    numbers=$(missing "$folder")
    [ -z "$numbers" ] || {
        echo "shards $numbers could not be made; what they said is in $folder. Run this again to go on." >&2
        exit 1
    }
}

until found=$(state) && grep -q '"finished":true' <<<"$found"; do
    if [ -n "$found" ]; then
        proposed=$("$DIDYMA" propose "$RUN")
    else
        # Where there is a run after all, this says what is wrong with it, or goes on with it.
        proposed=$("$DIDYMA" propose "$RUN" "$PROBLEM")
    fi
    round=$(sed -n 's/^round \([0-9]*\) of .*/\1/p' <<<"$proposed")
    # Other numbers of shards are other parts of the round: each has a folder of its own.
    folder=$RUN.shards/round-$round-of-$SHARDS
    make_shards "$RUN/proposal-$round.csv" "$folder"
    "$DIDYMA" merge "$RUN" "$folder"/shard-*.db
    "$DIDYMA" train "$RUN" >/dev/null
done
"$DIDYMA" show "$RUN"

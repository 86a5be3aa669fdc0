#!/usr/bin/env bash
# What intervals of a run cost the program and how near they come to an exact recording: tools/measured/intervals.sh
# [LOOKASIDE] (some five minutes; a quiet machine). Medians of five rounds, one way after the other; the exact recording
# once.
set -euo pipefail
measured=$(cd "$(dirname "$0")" && pwd)
lookaside=${1:-$measured/../../target/release/lookaside}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machine=zen4

# Runs a command whose program writes down its own seconds.
timed() {
    local way=$1
    shift
    "$@" >/dev/null 2>"$work/said" || true
    cat "$work/own-seconds" >>"$work/$way"
}

median() { sort -n | sed -n 3p; }

# The share of translation in percent and walks per 1,000 accesses, of an analysis in JSON, with intervals where it has
# such.
told() {
    python3 - "$1" <<'EOF'
import json, sys

report = json.load(open(sys.argv[1]))
outcome, estimate = report["outcome"], report.get("intervals")
sides = [outcome["data"], outcome["fetch"]]
accesses = sum(side["accesses"] for side in sides)
translation = sum(side["cost"]["tlb_hit_cycles"] + side["cost"]["walk_cycles"] for side in sides)
cycles = accesses + translation + sum(side["data_stall_cycles"] for side in sides)
if estimate is None:
    walks = sum(side["cost"]["walks"] for side in sides)
    print(f"{100 * translation / cycles:.2f} %, {1000 * walks / accesses:.2f}")
else:
    share, walks = estimate["translation_share"], estimate["walks_per_1000_accesses"]
    percent = [100 * share[end] for end in ("value", "low", "high")]
    print("{:.2f} % ({:.2f} to {:.2f}),".format(*percent), end=" ")
    print("{value:.2f} ({low:.2f} to {high:.2f}); {n} intervals".format(n=estimate["intervals"], **walks))
EOF
}

# Name, program, arguments.
cost() {
    local name=$1 round ways
    shift
    local own='from=$EPOCHREALTIME; "${@:2}"; echo "$EPOCHREALTIME - $from" | bc >"$1"'
    local program=(bash -c "$own" bash "$work/own-seconds" "$@")
    for round in 1 2 3 4 5; do
        timed native "${program[@]}"
        timed default "$lookaside" record --backend intervals -o "$work/default.lkt" "${program[@]}"
        timed second "$lookaside" record --every 1s -o "$work/second.lkt" "${program[@]}"
    done
    ways=$(for way in default second; do
        echo "$(median <"$work/$way") / $(median <"$work/native")" | bc -l
    done)
    printf '%s: native %.2f s; with intervals as often as is the default %.2f times that, once a second %.2f; ' "$name" \
        "$(median <"$work/native")" $ways
    for way in default second; do
        printf '%s %s, ' "$("$lookaside" trace info "$work/$way.lkt" | grep -o 'interval [0-9]*' || echo none)" "$way"
    done
    printf 'in the last round\n'
    rm -f "$work"/native "$work"/default* "$work"/second*
}

# The same, and beside it what an exact recording says.
measure() {
    cost "$@"
    shift
    "$lookaside" analyze --machine $machine --every 500ms --json="$work/intervals.json" "$@" >/dev/null 2>&1 || true
    "$lookaside" analyze --machine $machine --once --exact --json="$work/exact.json" "$@" >/dev/null 2>&1 || true
    printf '  exactly %s; in intervals %s\n' "$(told "$work/exact.json")" "$(told "$work/intervals.json")"
}

date -u '+%F %H:%M UTC'
grep -m 1 'model name' /proc/cpuinfo
for name in hash threads; do
    gcc -O2 -o "$work/$name" "$measured/truth/$name.c" -pthread
done
seq 1 3000000 | shuf --random-source=<(yes) >"$work/numbers"
measure 'hash table of 64 MiB' "$work/hash" 22 40000000
measure 'four threads, 64 MiB each' "$work/threads" 4 64 6000000
cost 'sort of 3 M lines' sort --parallel=1 "$work/numbers"
cost 'python3' python3 -c 'import random
d = {}
for i in range(8000000):
    d[random.randrange(1000000)] = i'
date -u '+%F %H:%M UTC'

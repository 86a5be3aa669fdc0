#!/usr/bin/env bash
# What it costs that programs record themselves, beside Valgrind: tools/measured/compiled.sh [LOOKASIDE] (some ten
# minutes; a quiet machine). Medians of three rounds, one way after the other; Valgrind, and its walks, once.
set -euo pipefail
measured=$(cd "$(dirname "$0")" && pwd)
lookaside=${1:-$measured/../../target/release/lookaside}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machine=skylake

seconds() {
    local from=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    echo "$EPOCHREALTIME - $from" | bc
}

median() { sort -n | sed -n 2p; }

# Walks of data in a trace.
walks() {
    "$lookaside" simulate --machine $machine --json "$1" 2>/dev/null |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["outcomes"][0]["data"]["cost"]["walks"])'
}

# Name, compiler, source, arguments.
measure() {
    local name=$1 compiler=$2 source=$measured/$3 plain=$work/plain own=$work/own round way times
    shift 3
    "$compiler" -O2 -o "$plain" "$source" -pthread
    "$lookaside" cc "$compiler" -O2 -o "$own" "$source" -pthread
    local record=("$lookaside" record --machine $machine) analyze=("$lookaside" analyze --once --machine $machine)
    for round in 1 2 3; do
        seconds "$plain" "$@" >>"$work/native"
        seconds "$own" "$@" >>"$work/itself"
        seconds "${record[@]}" -o "$work/own.lkt" "$own" "$@" >>"$work/record"
        seconds "${analyze[@]}" "$own" "$@" >>"$work/analyze"
    done
    seconds "${record[@]}" --no-fetches --backend valgrind -o "$work/exact.lkt" "$plain" "$@" >"$work/valgrind-record"
    seconds "${analyze[@]}" --backend valgrind "$plain" "$@" >"$work/valgrind-analyze"
    printf '%s: native %.2f s; times that: built by lookaside cc' "$name" "$(median <"$work/native")"
    for way in itself record analyze valgrind-record valgrind-analyze; do
        times=$(sort -n "$work/$way" | sed -n '2p;$p' | head -n 1)
        printf ', %s %.1f' "$way" "$(echo "$times / $(median <"$work/native")" | bc -l)"
    done
    printf '; data walks %s, exactly %s\n' "$(walks "$work/own.lkt")" "$(walks "$work/exact.lkt")"
    rm -f "$work"/*
}

date -u '+%F %H:%M UTC'
grep -m 1 'model name' /proc/cpuinfo
measure quicksort gcc quicksort.c
measure 'breadth-first search' gcc graph.c
measure 'random reads' gcc random_reads.c
measure 'std::map' g++ truth/map.cpp tree 200000 1000000
measure 'four threads' gcc truth/threads.c 4 16 5000000
date -u '+%F %H:%M UTC'

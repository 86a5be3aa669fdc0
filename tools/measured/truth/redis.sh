#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# A Redis server that writes nothing to the disk, on a socket in FOLDER, under redis-benchmark: redis.sh FOLDER REQUESTS
set -eu
socket=$1/redis.sock
redis-server --port 0 --unixsocket "$socket" --save '' --appendonly no --disable-thp no --dir "$1" --daemonize no \
	>"$1/redis.log" &
server=$!
# shellcheck disable=SC2064 # the server's number as it is now
trap "kill $server 2>/dev/null" EXIT
trap 'exit 130' INT TERM
until redis-cli -s "$socket" ping >/dev/null 2>&1; do
	kill -0 "$server"
	sleep 0.05
done
redis-benchmark -q -s "$socket" -r 1000000 -n "$2" -P 16 -t set,get
redis-cli -s "$socket" shutdown nosave || true
wait "$server"
trap - EXIT

# Starts a star for a script of this folder, which sources it.
#
# Sets: STAR, its address; WORK, a folder that goes at the end. Knows: NOVA, the binary (unless
# set, target/debug/nova-under-test: the one that a build of the tests leaves);
# start_star FLAGS...; stop_star; skip REASON.

set -eu
ROOT=$(cd "$(dirname "$0")/../../.." && pwd)
NOVA=${NOVA:-$ROOT/target/debug/nova-under-test}
# Beside the build, where tests have their data too: a file system with O_DIRECT.
mkdir -p "$ROOT/target/clients"
WORK=$(mktemp -d "$ROOT/target/clients/XXXXXX")
STAR_PID=
STAR=

skip() {
    echo "skipped: $1"
    exit 0
}

fail() {
    echo "failed: $1" >&2
    exit 1
}

test -x "$NOVA" || fail "no $NOVA: run 'cargo test --workspace --no-run', or name a binary by NOVA"

# Starts a star, or starts it again at the same address and on the same data.
start_star() {
    at=${STAR:-127.0.0.1:0}
    mkfifo "$WORK/said.$$" 2>/dev/null || true
    "$NOVA" serve --data "$WORK/data" --port 0 --cores 1 --http "$at" "$@" \
        > "$WORK/said.$$" 2>> "$WORK/log" &
    STAR_PID=$!
    # The pipe is held open, so that the star can go on saying things.
    exec 3< "$WORK/said.$$"
    while read -r line <&3; do
        case $line in
        "serving http://"*) STAR=${line#serving http://} && break ;;
        esac
    done
    test -n "$STAR" || fail "the star did not start: $(cat "$WORK/log")"
}

stop_star() {
    kill -"${1:-TERM}" "$STAR_PID"
    wait "$STAR_PID" || true
    STAR_PID=
}

at_end() {
    test -z "$STAR_PID" || kill -KILL "$STAR_PID" 2>/dev/null || true
    rm -rf "$WORK" || echo "left behind: $WORK" >&2
}
trap at_end EXIT

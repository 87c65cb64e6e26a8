#!/bin/sh
# Lets syslog-ng send its own log and lines of a file to a stream, in batches of NDJSON, and looks
# whether each line is there once, across a kill of the star.
#
# Needs syslog-ng with its modules http and json (Debian: syslog-ng-core, syslog-ng-mod-http).
. "$(dirname "$0")/star.sh"

command -v syslog-ng > /dev/null || skip "syslog-ng is not there"
LINES_EACH=500
RECORDS=/v1/streams/logs/syslog/records
start_star
curl -fsS -X PUT "http://$STAR/v1/buckets/logs" > /dev/null
curl -fsS -X PUT "http://$STAR/v1/streams/logs/syslog" > /dev/null
sed -e "s|@STAR@|$STAR|" -e "s|@WORK@|$WORK|" "$(dirname "$0")/syslog_ng.conf" \
    > "$WORK/syslog-ng.conf"

write_lines() {
    at=$1
    while test "$at" -lt "$2"; do
        echo "line $at says \"ping\" and \\ backslash"
        at=$((at + 1))
    done >> "$WORK/lines"
}

records() {
    curl -fsS -H 'accept: application/x-ndjson' "http://$STAR$RECORDS"
}

# Reads on from record $1 until a body holds $2: the star lets a read wait.
await() {
    next=$1
    for _ in $(seq 100); do
        page=$(curl -fsS "http://$STAR$RECORDS?seq=$next&wait_ms=2000&clamp=true")
        next=$(printf '%s' "$page" | sed 's/.*"next":\([0-9]*\).*/\1/')
        case $page in *"$2"*) return 0 ;; esac
    done
    fail "'$2' did not arrive: $(tail -n 5 "$WORK/syslog-ng.out")"
}

write_lines 0 "$LINES_EACH"
syslog-ng --foreground --no-caps --cfgfile "$WORK/syslog-ng.conf" \
    --persist-file "$WORK/persist" --pidfile "$WORK/pid" --control "$WORK/ctl" \
    2> "$WORK/syslog-ng.out" &
SYSLOG_PID=$!
trap 'kill -KILL $SYSLOG_PID 2>/dev/null || true; at_end' EXIT
await 0 "line $((LINES_EACH - 1)) says"

stop_star KILL
write_lines "$LINES_EACH" $((2 * LINES_EACH))
start_star
await 0 "line $((2 * LINES_EACH - 1)) says"
kill -TERM "$SYSLOG_PID"
wait "$SYSLOG_PID" || true

records > "$WORK/records"
grep -q "syslog-ng starting up" "$WORK/records" \
    || fail "its own log is not there: $(head -n 3 "$WORK/records")"
grep -o 'line [0-9]* says' "$WORK/records" | sort > "$WORK/found"
seq 0 $((2 * LINES_EACH - 1)) | sed 's/.*/line & says/' | sort > "$WORK/expected"
missing=$(sort -u "$WORK/found" | comm -13 - "$WORK/expected" | wc -l)
twice=$(($(wc -l < "$WORK/found") - $(sort -u "$WORK/found" | wc -l)))
test "$missing" -eq 0 || fail "$missing lines are missing"
echo "$(wc -l < "$WORK/records") records, all $((2 * LINES_EACH)) lines there, $twice twice"

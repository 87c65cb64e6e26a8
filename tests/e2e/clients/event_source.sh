#!/bin/sh
# A browser's EventSource follows a stream over a kill of the star, and goes on behind the last
# event that it saw.
#
# Needs chromium. The page is a file, so its origin is "null" and is allowed by name; a star that
# allows none must refuse the same page.
. "$(dirname "$0")/star.sh"

BROWSER=${BROWSER:-$(command -v chromium || command -v google-chrome || true)}
test -n "$BROWSER" || skip "chromium is not there"
PAGE=$(cd "$(dirname "$0")" && pwd)/event_source.html
BROWSER_PID=
# The browser is several processes, which write to its profile until the last one has ended.
end_browser() {
    test -n "$BROWSER_PID" || return 0
    kill -TERM "$BROWSER_PID" 2> /dev/null || true
    wait "$BROWSER_PID" || true
    for _ in $(seq 100); do
        pkill -KILL -f "user-data-dir=$WORK/profile" || return 0
        sleep 0.1
    done
}
trap 'end_browser; at_end' EXIT

append() {
    curl -fsS -H 'content-type: application/octet-stream' --data-binary "$1" \
        "http://$STAR/v1/streams/web/page/records" > /dev/null
}

# Waits until the page has told something that begins so: the star lets a read wait.
await() {
    next=0
    for _ in $(seq 20); do
        page=$(curl -fsS "$TOLD?seq=$next&wait_ms=1000&clamp=true")
        next=$(printf '%s' "$page" | sed 's/.*"next":\([0-9]*\).*/\1/')
        case $page in *"\"body\":\"$1"*) return 0 ;; esac
    done
    curl -fsS -H 'accept: application/x-ndjson' "$TOLD" >&2
    fail "the page did not tell '$1': $(tail -n 3 "$WORK/browser.log")"
}

start_star --http-allow-origin null
curl -fsS -X PUT "http://$STAR/v1/buckets/web" > /dev/null
curl -fsS -X PUT "http://$STAR/v1/streams/web/page" > /dev/null
curl -fsS -X PUT "http://$STAR/v1/streams/web/told" > /dev/null
TOLD=http://$STAR/v1/streams/web/told/records
append one
"$BROWSER" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --user-data-dir="$WORK/profile" --remote-debugging-port=0 "file://$PAGE?star=http://$STAR" \
    > "$WORK/browser.log" 2>&1 &
BROWSER_PID=$!
await "saw 0 one"
append two
await "saw 1 two"

stop_star KILL
start_star --http-allow-origin null
append three
append end
await "whole 0:one,1:two,2:three,3:end"
echo "an EventSource saw 4 records, each once, over a kill of the star"

status=$(curl -s -o "$WORK/refused" -w '%{http_code}' -H 'origin: https://other.example' \
    "http://$STAR/v1/streams/web/page/records")
test "$status" = 403 || fail "a page of another origin was answered $status"

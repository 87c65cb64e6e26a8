#!/bin/sh
# Runs the public conformance suite of the Durable Streams protocol against a real star.
#
# Needs node and npm. SUITE names a folder in which the suite is installed or gets installed;
# further arguments go to vitest: durable_streams.sh -t 'Fork'
. "$(dirname "$0")/star.sh"

command -v node > /dev/null && command -v npm > /dev/null || skip "node and npm are not there"
SUITE=${SUITE:-$ROOT/target/clients/suite}
mkdir -p "$SUITE"
cp "$(dirname "$0")/durable_streams/package.json" "$(dirname "$0")/durable_streams/star.test.mjs" \
    "$SUITE"
test -d "$SUITE/node_modules/@durable-streams" \
    || npm install --prefix "$SUITE" --no-audit --no-fund \
    || skip "the suite could not be fetched"
start_star --http-allow-origin '*'
curl -fsS -X PUT "http://$STAR/v1/buckets/suite" > /dev/null
cd "$SUITE"
STAR_URL="http://$STAR/v1/durable/suite" npx vitest run --no-coverage star.test.mjs "$@"

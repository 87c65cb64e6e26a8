#!/bin/sh
# Runs schemathesis (PyPI) against the HTTP of a fresh star: requests made from /openapi.json, right
# and wrong ones, and every answer held to the document. It ends with 0 when there is no finding.
#
#   tests/e2e/schemathesis.sh [EXAMPLES [SEED]]       how many of each operation, and the seed
#
# It takes `schemathesis` from PATH or from SCHEMATHESIS, and the star from target/debug/nova or
# from NOVA.
set -eu
cd "$(dirname "$0")/../.."
examples=${1:-50}
seed=${2:-1}
schemathesis=${SCHEMATHESIS:-schemathesis}
nova=${NOVA:-target/debug/nova}
if ! command -v "$schemathesis" > /dev/null; then
    echo "left out: there is no schemathesis; pip install schemathesis" >&2
    exit 0
fi
[ -n "${NOVA:-}" ] || cargo build --quiet -p nova-server
home=$(mktemp -d -p "${TMPDIR:-$PWD/target}" schemathesis.XXXXXX)
config=$PWD/tests/e2e/schemathesis.toml
"$nova" serve --data "$home/data" --port 0 --http 127.0.0.1:0 > "$home/said" 2> "$home/errors" &
star=$!
trap 'kill $star 2> /dev/null || true; wait $star 2> /dev/null || true; rm -rf "$home"' EXIT
until grep -q '^ready$' "$home/said"; do
    kill -0 $star || { cat "$home/errors" >&2; exit 1; }
    sleep 0.1
done
address=$(sed -n 's/^serving //p' "$home/said")
# It keeps notes of its own where it runs.
cd "$home"
run() {
    "$schemathesis" --config-file "$1" run "$address/openapi.json" --continue-on-failure \
        --max-examples "$examples" --seed "$seed" --request-timeout 90 --warnings off
}
# Once with names as they come, which are mostly of nothing, and once with those of a stream.
run "$config"
curl -sS --fail -X PUT "$address/v1/buckets/tests" -H 'content-type: application/json' \
    -d '{"create_stream_on_append":true,"create_stream_on_read":true}' > "$home/made"
{ printf '[parameters]\n"path.bucket" = "tests"\n"path.key" = "k"\n'; cat "$config"; } > named.toml
run named.toml
kill -0 $star || { echo "the star has ended" >&2; exit 1; }

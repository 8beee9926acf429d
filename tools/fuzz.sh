#!/bin/bash
# Builds every fuzzer with address and undefined sanitizers and runs each for a while.
#   tools/fuzz.sh [SECONDS_EACH] [NAME...]       NAME: as gguf_fuzz; default all
# Starts from fuzz/seeds/<name>/ where that exists and keeps what it finds in out/fuzz/corpus/<name>/.
# A crash ends it with status 1 and leaves the input under out/fuzz/crashes/.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
build=out/fuzz
if [ ! -f $build/build.ninja ]; then
  cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCICADA_FUZZ=ON \
    -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 \
    -DCICADA_SANITIZE=address,undefined,fuzzer-no-link >/dev/null
fi
cmake --build $build --target fuzzers

names=("$@")
if [ ${#names[@]} = 0 ]; then
  mapfile -t names < <(git ls-files --cached --others --exclude-standard 'src/*_fuzz.cc' |
    sed 's|.*/||; s|\.cc$||' | sort)
fi
if [ ${#names[@]} = 0 ]; then
  echo "fuzz: there are no fuzzers" >&2
  exit 1
fi
mkdir -p $build/crashes
for name in "${names[@]}"; do
  corpus=$build/corpus/$name
  mkdir -p "$corpus"
  folders=("$corpus")
  if [ -d "fuzz/seeds/$name" ]; then folders+=("fuzz/seeds/$name"); fi
  echo "fuzz: $name, $seconds s"
  # Hostile sizes must be refused, not allocated: memory is limited well below the machine's.
  status=0
  "$build/fuzz/$name" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
    -print_final_stats=1 -artifact_prefix="$build/crashes/$name-" "${folders[@]}" \
    >"$build/$name.log" 2>&1 || status=$?
  grep -E 'ERROR|SUMMARY|Test unit written|number_of_executed_units|peak_rss' "$build/$name.log" ||
    true
  if [ "$status" != 0 ]; then
    echo "fuzz: $name failed; the input lies in $build/crashes" >&2
    exit 1
  fi
done
echo "fuzz: ${#names[@]} fuzzers, no crash"

#!/bin/bash
# Builds llama.cpp's llama-bench, llama-batched-bench and llama-server from source for this machine, to be compared with.
#   bench/peers/llamacpp.sh [FOLDER]     (default: out/peers/llamacpp)
# The source is the one that the Python package llama-cpp-python carries, fetched through pip. Prints the path of llama-bench
# on standard output, everything else on standard error. A second run finds it built. About ten minutes on two cores.
#   LLAMACPP_FLAGS   more flags for cmake, e.g. -DGGML_OPENMP=OFF (with a FOLDER of its own)
set -euo pipefail
cd "$(dirname "$0")/../.."
version=0.3.36
folder=${1:-out/peers/llamacpp}
program=$folder/build/bin/llama-bench

say() { echo "llamacpp: $*" >&2; }

if [ -x "$program" ] && [ -x "$folder/build/bin/llama-batched-bench" ] && [ -x "$folder/build/bin/llama-server" ]; then
  realpath "$program"
  exit 0
fi
mkdir -p "$folder"
source_folder=$folder/llama_cpp_python-$version/vendor/llama.cpp
if [ ! -d "$source_folder" ]; then
  say "fetching the source of llama-cpp-python $version"
  python3 -m venv "$folder/venv" >&2
  "$folder/venv/bin/pip" install --quiet scikit-build-core cmake ninja >&2
  "$folder/venv/bin/pip" download --quiet --no-deps --no-binary=:all: --no-build-isolation --dest "$folder" \
    "llama-cpp-python==$version" >&2
  tar -xf "$folder/llama_cpp_python-$version.tar.gz" -C "$folder"
fi
flags=(-DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DBUILD_SHARED_LIBS=OFF -DLLAMA_CURL=OFF -DLLAMA_BUILD_TESTS=OFF
       -DLLAMA_BUILD_SERVER=ON)
# A native build crashes on some machines with AMX (illegal instruction, general protection fault): built without it there.
if grep -qw amx_tile /proc/cpuinfo && [ "${LLAMACPP_AMX:-off}" != on ]; then
  say "AMX is left out of this build, because native builds with it crash on some machines; LLAMACPP_AMX=on keeps it"
  flags+=(-DCMAKE_C_FLAGS="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16" -DCMAKE_CXX_FLAGS="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16")
fi
say "building; about ten minutes"
# shellcheck disable=SC2086  # several flags in one variable
cmake -S "$source_folder" -B "$folder/build" -G Ninja "${flags[@]}" ${LLAMACPP_FLAGS:-} >"$folder/cmake.log" 2>&1 ||
  { tail -5 "$folder/cmake.log" >&2; say "cmake failed, see $folder/cmake.log"; exit 1; }
ninja -C "$folder/build" llama-bench llama-batched-bench llama-server >"$folder/build.log" 2>&1 ||
  { tail -5 "$folder/build.log" >&2; say "the build failed, see $folder/build.log"; exit 1; }
realpath "$program"

#!/bin/bash
# A Python environment for tests and tools under build/venv, from a pinned list.
#   tools/venv.sh LIST...        LIST: tests, oracle (tools/python/LIST.txt)
# Does nothing when the environment already holds exactly these lists.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=build/venv
for list in "$@"; do
  wanted=$(sha256sum < "tools/python/$list.txt" | cut -c1-64)
  stamp=$venv/.installed-$list
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && [ -x $venv/bin/python ]; then continue; fi
  echo "venv: installing tools/python/$list.txt into $venv"
  [ -x $venv/bin/python ] || python3 -m venv $venv
  $venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: \
    -r "tools/python/$list.txt"
  echo "$wanted" > "$stamp"
done

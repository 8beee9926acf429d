#!/bin/bash
# clang-tidy on the sources that changed.
#   tools/check_tidy.sh BUILD [FILE...]
# Without files: what differs from $CICADA_LINT_BASE, by default from where this branch left
# origin/main, or on that branch itself from the commit before; all files where there is no such commit.
# Tests are left out: they dereference what they expect to be there, and a test that is wrong fails.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
shift
tidy=clang-tidy-16
if ! command -v $tidy >/dev/null; then
  echo "tidy: skipped, $tidy is not installed"
  exit 0
fi

base_commit() {
  if [ -n "${CICADA_LINT_BASE:-}" ]; then
    git rev-parse --verify --quiet "$CICADA_LINT_BASE^{commit}"
    return
  fi
  local base
  base=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=HEAD~1; fi
  git rev-parse --verify --quiet "$base^{commit}"
}

# The source to look at for a changed file: a header is seen through the source of its name.
changed_sources() {
  local base file
  if base=$(base_commit); then
    git diff --name-only "$base" -- 'src/*.cc' 'src/*.h'
    git ls-files --others --exclude-standard -- 'src/*.cc' 'src/*.h'
  else
    git ls-files -- 'src/*.cc'
  fi | sed 's/\.h$/.cc/' | sort -u | while read -r file; do
    if [ -f "$file" ] && [[ $file != *_test.cc ]]; then echo "$file"; fi
  done
}

if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(changed_sources); fi
if [ ${#files[@]} = 0 ]; then
  echo "tidy: no changed sources"
  exit 0
fi

# One source. The flow analysis of unchecked-optional-access in clang 16 crashes on some sources (killed
# by a signal: 128 and more) and never ends on others (124): those are looked at without it, and named.
tidy_one() {
  local status=0
  timeout 120 $tidy --quiet -p "$1" "$2" 2>/dev/null || status=$?
  if [ $status -ge 124 ]; then
    echo "tidy: $2: unchecked-optional-access fails here, the other checks run"
    status=0
    $tidy --quiet -p "$1" --checks=-bugprone-unchecked-optional-access "$2" 2>/dev/null || status=$?
  fi
  # 255 would make xargs stop at once, without the findings of the other sources.
  [ $status = 0 ] || return 1
}
export -f tidy_one
export tidy
printf '%s\0' "${files[@]}" | xargs -0 -P 2 -I {} bash -c 'tidy_one "$@"' tidy "$build" {}
echo "tidy: ${#files[@]} sources, nothing found"

#!/bin/bash
# Every C++ file is formatted as .clang-format says, by the one version that decides.
#   tools/check_format.sh [FOLDER]      status 77: that version is not installed
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

formatter=clang-format-16
if ! command -v $formatter >/dev/null; then
  echo "skipped: $formatter is not installed"
  exit 77
fi
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  list=(git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc')
else
  list=(find . \( -name '*.h' -o -name '*.cc' \) -print0)
fi
# A file that was removed but not yet committed is still in git's list.
"${list[@]}" | while IFS= read -r -d '' file; do
  if [ -f "$file" ]; then printf '%s\0' "$file"; fi
done | xargs -0 -r -P 2 -n 20 $formatter --dry-run -Werror
echo "format: all files as .clang-format says"

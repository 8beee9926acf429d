#!/bin/sh
# Runs a Python program of the oracle tests, or skips (status 77) and says why.
#   run_python.sh BUILD_DIR MODULES SCRIPT ARGS...      MODULES: comma-separated, must be importable
build=$1 modules=$2
shift 2
python=${CICADA_PYTHON:-$build/venv/bin/python}
if [ ! -x "$python" ]; then
  echo "skipped: no Python environment at $python (make test sets it up; docs/testing.md)"
  exit 77
fi
if ! "$python" -c "import $modules" 2>/dev/null; then
  echo "skipped: $python lacks one of the modules $modules (docs/testing.md)"
  exit 77
fi
# Small matrices: threads of the linear algebra library only disturb other tests.
OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 exec "$python" "$@"

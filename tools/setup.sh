#!/bin/bash
# Makes sure that what a build needs is installed, on Debian and its relatives.
#   tools/setup.sh [GROUP...]     groups: build (always), test, lint, fuzz
# Says what it installs, changes nothing when all is there (a few tenths of a second), and ends with
# one sentence and status 1 when it cannot go on. CICADA_SETUP=skip trusts that all is there.
set -euo pipefail

minimum_rust=1.87

build_packages=(
  build-essential cmake ninja-build pkg-config python3 python3-pip
  libsimdjson-dev libcli11-dev libfmt-dev libexpected-dev libutf8proc-dev libssl-dev libboost1.81-dev
  libgtest-dev googletest ccache mold)
test_packages=(python3-venv libbenchmark-dev binutils git clang-format-16)
lint_packages=(clang-format-16 clang-tidy-16 binutils git)
fuzz_packages=(clang-16 libclang-rt-16-dev)

# Faster builds or one check more, but nothing stops without them.
optional=" ccache mold libbenchmark-dev clang-format-16 clang-tidy-16 "

stop() {
  echo "setup: $*" >&2
  exit 1
}

# Runs a command as root. Root itself needs no sudo, and machines without it are common.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    stop "packages are missing and this is neither root nor a machine with sudo; ask its owner to run: apt-get install ${missing[*]}"
  fi
}

is_optional() { [[ $optional == *" $1 "* ]]; }

# Sets `missing` to those of the arguments that are not installed.
find_missing() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  missing=()
  local package
  for package in "$@"; do
    grep -qx "$package installed" <<<"$installed" || missing+=("$package")
  done
}

# True when apt offers the package here.
is_offered() { apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'; }

# Installs what is missing. An optional package that apt does not offer, or that is missing where
# nobody may install, is left out with a line.
install_packages() {
  find_missing "$@"
  [ ${#missing[@]} -gt 0 ] || return 0
  local package needed=()
  for package in "${missing[@]}"; do is_optional "$package" || needed+=("$package"); done
  if [ ${#needed[@]} = 0 ] && [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    echo "setup: going on without ${missing[*]} (not needed, and installing needs root)"
    return 0
  fi
  echo "setup: installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
    echo "setup: apt-get update failed, going on with the package lists at hand" >&2
  local wanted=()
  for package in "${missing[@]}"; do
    if is_optional "$package" && ! is_offered "$package"; then
      echo "setup: going on without $package, which this machine's package lists do not have"
    else
      wanted+=("$package")
    fi
  done
  [ ${#wanted[@]} -gt 0 ] || return 0
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null ||
    stop "apt-get could not install ${wanted[*]} (its own words are above)"
}

rust_version() { rustc --version 2>/dev/null | sed -nE 's/^rustc ([0-9]+\.[0-9]+).*/\1/p'; }

# True when version $1 is at least version $2.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

has_rust() {
  command -v cargo >/dev/null || return 1
  local version
  version=$(rust_version)
  [ -n "$version" ] && at_least "$version" "$minimum_rust"
}

install_rust() {
  # Where rustup puts it, also when the shell's start files do not know yet.
  PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
  has_rust && return 0
  local found
  found=$(rust_version)
  echo "setup: installing rustc-web and cargo-web (Rust ${found:-missing}, at least $minimum_rust is needed)"
  missing=(rustc-web cargo-web)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends rustc-web cargo-web >/dev/null ||
    stop "apt-get has no Rust $minimum_rust for this machine; install it with rustup and run this again"
  hash -r
  has_rust ||
    stop "Rust $(rust_version) in $(command -v rustc) comes first in PATH, at least $minimum_rust is needed"
}

if [ "${CICADA_SETUP:-}" = skip ]; then exit 0; fi
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  stop "this is no Debian-like machine; install the counterparts of: ${build_packages[*]}, and Rust $minimum_rust, then set CICADA_SETUP=skip"

wanted_packages=("${build_packages[@]}")
for group in "$@"; do
  case $group in
    build) ;;
    test) wanted_packages+=("${test_packages[@]}") ;;
    lint) wanted_packages+=("${lint_packages[@]}") ;;
    fuzz) wanted_packages+=("${fuzz_packages[@]}") ;;
    *) stop "unknown group '$group', there are build, test, lint and fuzz" ;;
  esac
done
install_packages "${wanted_packages[@]}"
install_rust

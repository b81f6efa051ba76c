# Sourced by the other scripts: where things are, what is missing, and errors that are one line.
# shellcheck shell=bash
set -euo pipefail
SOURCE_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=cmake/versions.sh
. "$SOURCE_DIR/cmake/versions.sh"
BUILD_DIR=${BUILD_DIR:-build}
case $BUILD_DIR in /*) ;; *) BUILD_DIR=$SOURCE_DIR/$BUILD_DIR ;; esac
LOG_DIR=$BUILD_DIR/log
JOBS=$(nproc 2>/dev/null || echo 2)
SCRIPT=${0##*/}

say() { printf '== %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$SCRIPT" "$*" >&2; exit 1; }

# A path as the user would type it from the source folder.
shown() { case $1 in "$PWD"/*) echo "${1#"$PWD"/}" ;; *) echo "$1" ;; esac; }

# is_there WHAT: a command, or a header below an include folder.
is_there() {
  case $1 in
    */*|*.h)
      local folder folders=/usr/include:/usr/local/include:${CPLUS_INCLUDE_PATH:-}:${CPATH:-}
      local prefix IFS=':;'
      for prefix in ${CMAKE_PREFIX_PATH:-}; do folders=$folders:$prefix/include; done
      for folder in $folders; do [ -n "$folder" ] && [ -e "$folder/$1" ] && return 0; done
      return 1 ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

# apt_install PACKAGE...: through apt-get, as root or with sudo. Ends the script in one line if it cannot.
apt_install() {
  local by_hand="install by hand and run this again: $*"
  command -v apt-get >/dev/null || die "packages are missing and there is no apt-get here; $by_hand"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "packages are missing, and this is neither root nor is there sudo; as root: apt-get install $*"
    as_root=(sudo)
    [ -t 0 ] || as_root=(sudo -n)   # nobody there to type a password
  fi
  mkdir -p "$LOG_DIR"
  local log=$LOG_DIR/apt.log
  say "installing with apt: $*"
  # A failed update is not the end: one unreachable source of many, or lists that are good enough.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 update \
    >"$log" 2>&1 </dev/null || true
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 \
    install --no-install-recommends "$@" >>"$log" 2>&1 </dev/null ||
    die "apt could not install packages ($(shown "$log") says why); $by_hand"
}

# need_packages NAME:WHAT...: installs those packages whose WHAT is not there.
need_packages() {
  local need missing=()
  for need in "$@"; do is_there "${need#*:}" || missing+=("${need%%:*}"); done
  if [ ${#missing[@]} -gt 0 ]; then apt_install "${missing[@]}"; fi
  for need in "$@"; do
    is_there "${need#*:}" || die "${need%%:*} is installed, but ${need#*:} is still not found; is it in an unusual place?"
  done
}

# at_least VERSION MINIMUM
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

check_build_tools() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
  at_least "${version:-0}" "$MIN_CMAKE" ||
    die "cmake ${version:-of unknown version} is too old: $MIN_CMAKE or newer is needed (python3 -m pip install cmake gives one)"
  export CXX=${CXX:-g++}
  # shellcheck disable=SC2086   # CXX may hold options
  version=$($CXX -dumpfullversion 2>/dev/null || true)   # clang does not know this option
  if [ -n "$version" ]; then
    at_least "$version" "$MIN_GCC" ||
      die "$CXX is GCC $version: $MIN_GCC or newer is needed; install one (apt-get install g++-$MIN_GCC) and set CXX=g++-$MIN_GCC"
  fi
}

# configure FOLDER CMAKE-ARGUMENT...: arguments before -- hold for a folder's first configuration only, so that a
# folder which somebody set up otherwise stays as it is; those after it always hold.
configure() {
  local folder=$1 first=() always=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do first+=("$1"); shift; done
  if [ $# -gt 0 ]; then shift; always=("$@"); fi
  [ -d "$BUILD_DIR/toolkit/include" ] && always+=("-DGEMMTUNE_TOOLKIT_DIR=$BUILD_DIR/toolkit")
  if [ -e "$folder/CMakeCache.txt" ]; then
    first=()
  else
    first+=(-G Ninja)
    if command -v ccache >/dev/null; then first+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  fi
  mkdir -p "$folder/log"
  local log=$folder/log/cmake.log
  cmake -S "$SOURCE_DIR" -B "$folder" "${first[@]}" "${always[@]}" >"$log" 2>&1 </dev/null ||
    die "cmake could not configure $(shown "$folder"): $(sed -n '/^CMake Error/{n;s/^ *//;p;q}' "$log") ($(shown "$log") has it all)"
}

# build FOLDER TARGET
build() {
  say "building $2 in $(shown "$1") with $JOBS jobs"
  cmake --build "$1" --target "$2" -j "$JOBS" </dev/null ||
    die "the build failed, see above; with other compilers than GCC 12 and 13, please report it"
}

#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests through ctest, whose summary, with the tests that were skipped,
# closes the output. Before that: the layout of the sources (clang-format), and with --sanitize or CI=true the unit and
# emulator tests under the address and undefined-behaviour sanitizers and half a minute of each fuzz target. Other arguments go to that last ctest, e.g. -L unit.
# BUILD_DIR overrides the build folder (build); the sanitizers build in $BUILD_DIR-sanitize.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$SOURCE_DIR"
sanitize=no
[ "${CI:-}" = true ] && sanitize=yes
if [ "${1:-}" = --sanitize ]; then sanitize=yes; shift; fi
failed=()

# shellcheck disable=SC2086   # a list
need_packages $BUILD_NEEDS $TEST_NEEDS
# Elsewhere, and where there is no such package, fuzzing is skipped without it.
if [ "${CI:-}" = true ]; then (need_packages clang:clang++) || true; fi
check_build_tools
folder=$(bash scripts/toolkit.sh)
say "CUDA toolkit: $(shown "$folder")"

check_layout() {
  local tool version sources
  for tool in "clang-format-$CLANG_FORMAT_MAJOR" clang-format; do
    version=$("$tool" --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p') || true
    [ "$version" = "$CLANG_FORMAT_MAJOR" ] && break
  done
  if [ "$version" != "$CLANG_FORMAT_MAJOR" ]; then
    say "layout: skipped, no clang-format $CLANG_FORMAT_MAJOR here"
    return 0
  fi
  # Not *.cu and *.cuh: their inline PTX is laid out by hand.
  if ! sources=$(git -c safe.directory="$SOURCE_DIR" ls-files -- '*.h' '*.cc' 2>/dev/null) ||
    [ -z "$sources" ]; then
    say "layout: skipped, this is no git checkout"
    return 0
  fi
  mkdir -p "$LOG_DIR"
  local log=$LOG_DIR/clang-format.log
  if printf '%s\n' "$sources" | xargs -d '\n' "$tool" --dry-run -Werror >"$log" 2>&1; then
    say "layout: $(wc -l <<<"$sources") files as clang-format $CLANG_FORMAT_MAJOR lays them out"
  else
    sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: code should be clang-formatted.*/\1/p' "$log" | sort | uniq -c | sort -rn >&2
    say "layout: FAILED, see above for the places in each file; $tool -i FILE puts them right"
    return 1
  fi
}

check_layout || failed+=("layout")

if [ "$sanitize" = yes ]; then
  configure "$BUILD_DIR-sanitize" -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" -DGEMMTUNE_SANITIZE=ON -- \
    -DBUILD_TESTING=ON
  build "$BUILD_DIR-sanitize" all
  say "unit and emulator tests under the sanitizers"
  # Not those that run or compile many whole variants, or fill large databases: minutes in NVRTC, the emulator and SQLite,
  # of host code that the others reach too. They run below, without sanitizers.
  ctest --test-dir "$BUILD_DIR-sanitize" -L '^(unit|emulator)$' \
    -E '^(Families|Examples|CompileCoverage|RealCompiler|KillNine)|Proof|TimeOnManyTrials' \
    --no-tests=error --output-on-failure -j "$JOBS" </dev/null || failed+=("sanitizers")
  bash scripts/fuzz.sh 30 || failed+=("fuzzing")
fi

configure "$BUILD_DIR" -DCMAKE_BUILD_TYPE=Release -- -DBUILD_TESTING=ON
build "$BUILD_DIR" all
say "all tests"
ctest --test-dir "$BUILD_DIR" --no-tests=error --output-on-failure -j "$JOBS" "$@" </dev/null || failed+=("tests")
[ ${#failed[@]} = 0 ] || die "failed: ${failed[*]}"

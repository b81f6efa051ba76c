#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each for SECONDS (60), from the inputs under tests/fuzz and the kernels
# under tests/emulator. An input that crashes, hangs or takes too much memory ends it with status 1 and is left in
# $BUILD_DIR-fuzz/found; once it is fixed, it belongs into its corpus. Without clang it says so and ends well.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$SOURCE_DIR"
seconds=${1:-60}
case $seconds in ''|*[!0-9]*) die "usage: scripts/fuzz.sh [SECONDS]" ;; esac
clang=$(command -v clang++ || true)
if [ -z "$clang" ]; then
  say "fuzzing: skipped, no clang++ here (apt-get install clang)"
  exit 0
fi
if ! "$clang" -x c++ -fsanitize=fuzzer - -o /dev/null 2>/dev/null <<<'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'; then
  say "fuzzing: skipped, $clang comes without libFuzzer"
  exit 0
fi
# shellcheck disable=SC2086   # a list
need_packages $BUILD_NEEDS
folder=$BUILD_DIR-fuzz
# -O1: a sanitized -O2 build takes much longer to compile than it saves in a minute of running.
configure "$folder" -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O1 -g1" "-DCMAKE_CXX_COMPILER=$clang" -- \
  -DGEMMTUNE_FUZZ=ON -DBUILD_TESTING=OFF
build "$folder" fuzz_ptx
build "$folder" fuzz_launch
mkdir -p "$folder/found"

# fuzz TARGET MAX_LEN SEEDS...
fuzz() {
  local target=$1 max_len=$2
  local log=$folder/log/$target.log grown=$folder/grown/$target dict=tests/fuzz/${target#fuzz_}.dict
  shift 2
  mkdir -p "$grown"
  say "$target for $seconds s"
  "$folder/tests/fuzz/$target" -max_total_time="$seconds" -max_len="$max_len" -timeout=20 -rss_limit_mb=3000 \
    -print_final_stats=1 -dict="$dict" -artifact_prefix="$folder/found/" "$grown" "$@" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2; die "$target found something, see $(shown "$folder/found")"; }
  say "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, nothing found"
}
fuzz fuzz_ptx 12000 tests/fuzz/corpus_ptx tests/emulator/kernels
fuzz fuzz_launch 4000 tests/fuzz/corpus_launch

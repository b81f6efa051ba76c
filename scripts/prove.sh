#!/usr/bin/env bash
# The full proof of sm100_gemm: every legal combination of STRENGTH (3) values of knobs, architecture, problem class, fill,
# scaling and schedule, each kernel compiled, checked statically and run on the emulator on a ragged problem, bit for bit;
# then depths of 64 to 8192, 4096 x 4096 x 4096, every step of examples/ladders, the machine instructions (with nvdisasm),
# and whether every rule of the space is needed. Prints the summary; faults are in $BUILD_DIR/log/proof.log. CI runs
# STRENGTH 2 without the depths, the large problem and the rules. 3 takes a quarter of an hour on two cores.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$SOURCE_DIR"
strength=${1:-3}
case $strength in 2|3|4) ;; *) die "usage: scripts/prove.sh [STRENGTH], 2 to 4" ;; esac
# shellcheck disable=SC2086   # a list
need_packages $BUILD_NEEDS $TEST_NEEDS
check_build_tools
say "CUDA toolkit: $(shown "$(bash scripts/toolkit.sh)")"
configure "$BUILD_DIR" -DCMAKE_BUILD_TYPE=Release -- -DBUILD_TESTING=ON
build "$BUILD_DIR" proof_tests
mkdir -p "$LOG_DIR"
log=$LOG_DIR/proof.log
say "proving with strength $strength, $(shown "$log") has it all"
GEMMTUNE_COVERING=$strength "$BUILD_DIR/tests/proof_tests" >"$log" 2>&1 </dev/null && failed=no || failed=yes
grep -aE '^(row [0-9]+ (static|run): |[^[]*[0-9]+ rows|[0-9]+ s; |rule  |[a-z_]+ +[0-9]+( |$))|of [0-9]+ rows|no nvdisasm|FAILED TEST' "$log" | grep -avE '^[0-9]+ of [0-9]+ rows$' | cut -c1-300 || true
[ "$failed" = no ] || die "the proof failed, see $(shown "$log")"
say "proven"

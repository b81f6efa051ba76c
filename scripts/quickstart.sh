#!/usr/bin/env bash
# Installs what is missing, builds gemmtune and runs its main job on the shapes of Llama 3 70B: on a GPU that a kernel
# family runs on, a short sweep with times and winners; elsewhere the same sweep for sm_100a, every kernel run and proven
# on the CPU emulator. Then names three commands to try. BUILD_DIR overrides the build folder (build).
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$SOURCE_DIR"

# shellcheck disable=SC2086   # a list
need_packages $BUILD_NEEDS
check_build_tools
folder=$(bash scripts/toolkit.sh)
say "CUDA toolkit: $(shown "$folder")"
configure "$BUILD_DIR" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF
build "$BUILD_DIR" gemmtune

gemmtune=$(shown "$BUILD_DIR")/gemmtune
db=$(shown "$BUILD_DIR")/quickstart.db
shapes=examples/shapes/llama3-70b.csv
sweep=("$gemmtune" sweep --shapes "$shapes" --trials 8 --db "$db")
gpu=$("$gemmtune" devices | sed -n 's/^measure  *\(sm_[0-9a-z]* on cuda:[0-9]*\).*/\1/p')
[ -n "$gpu" ] || sweep+=(--arch sm_100a)
say "${sweep[*]}"
# The table goes to stdout in one piece, after what the sweep says on stderr.
status=0
"${sweep[@]}" >"$BUILD_DIR/quickstart.txt" </dev/null || status=$?
cat "$BUILD_DIR/quickstart.txt"
[ "$status" = 130 ] && exit 130

next() { printf '\n  # %s\n  %s\n' "$1" "$2"; }
printf '\nNext:\n'
if [ -n "$gpu" ]; then
  next "the winners and their runners-up" "$gemmtune best --shapes $shapes --top 3 --db $db"
  next "the winners as a C++ header" "$gemmtune export --shapes $shapes --db $db -o $(shown "$BUILD_DIR")/winners.h"
  next "one shape for longer" "$gemmtune sweep --shape 4096x4096x4096 --trials 200 --db $db"
else
  next "why a configuration is not legal" \
    "$gemmtune space --arch sm_100a --shape 4096x4096x4096 --explain stages=6,tile_n=256"
  next "what some configurations compile to: registers, spills, instructions; source, PTX and cubin in a folder" \
    "$gemmtune compile --arch sm_100a --set stages=4 --set tile_n=128,256 --dump $(shown "$BUILD_DIR")/kernels"
  next "one kernel at a shape on the CPU, with a timeline for a trace viewer" \
    "$gemmtune emulate --arch sm_100a --shape 512x512x512 --trace $(shown "$BUILD_DIR")/trace.json"
  next "the same sweep for H100 and H200" "$gemmtune sweep --arch sm_90a --shapes $shapes --trials 8 --db $db"
fi
exit "$status"

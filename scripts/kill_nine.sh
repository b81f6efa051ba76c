#!/bin/sh
# One hundred kill -9 of a real sweep at random moments, and a table of what they cost (nothing).
#
#     scripts/kill_nine.sh [--kills N] [--seconds S] [--seed N] [BUILD-FOLDER] [-- SWEEP-OPTION...]
#
# Without sweep options: a small sweep on the emulator, so no GPU is needed; about three minutes on two cores.
set -eu
kills=100 seconds=600 seed=1 build=build
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
    --kills) kills=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    -*) echo "kill_nine.sh: unknown option $1" >&2; exit 2 ;;
    *) build=$1; shift ;;
  esac
done
if [ $# -gt 1 ]; then
  shift
else
  set -- --device emulator --arch sm_90a --shape 256x256x256 --shape 512x256x256 --set stages=2,3 --set tile_m=64 \
    --set tile_n=16,32 --set tile_k=64 --set consumers=1 --set cluster_m=1 --set cluster_n=1 --strategy random \
    --trials 10 --jobs 1
fi
exec "$build/tests/kill_nine" "$build/gemmtune" "$kills" "$seconds" "$seed" -- "$@"

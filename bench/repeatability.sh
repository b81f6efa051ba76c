#!/bin/sh
# Do sweeps agree? Runs the same sweep several times with other seeds and fresh databases, then measures all
# winners again, together in one run, and prints for each shape: how many different winners there are, the
# spread of the sweeps' own medians (as everywhere: (75th - 25th percentile) / median) and their whole range, and
# the slowest winner against the fastest, from the ratios of both to the first sweep's winner. It fails to tie if that is more than 2 % and the 95 % intervals of the two ratios do not
# meet. Exit status 3 if one does.
#
# The seeds change the order of measuring; the candidates are drawn with SEARCH_SEED (1), so that this asks
# whether measuring repeats. SEARCH_SEED=each draws others for each sweep, and asks whether searching does.
#
#   bench/repeatability.sh [path of gemmtune] [folder for the databases]
#
# SWEEPS (5), TRIALS (12) and SHAPES override the defaults. Needs a GPU.
set -eu
gemmtune=${1:-build/gemmtune}
folder=${2:-$(mktemp -d)}
sweeps=${SWEEPS:-5}
trials=${TRIALS:-12}
search=${SEARCH_SEED:-1}
shapes=${SHAPES:-16x8192x8192 128x8192x28672 512x4096x4096 2048x8192x1024 4096x4096x4096 8192x8192x8192}

arguments=
for shape in $shapes; do arguments="$arguments --shape $shape"; done
mkdir -p "$folder"
databases=
for seed in $(seq "$sweeps"); do
  # Word splitting is wanted: each shape is an argument.
  # shellcheck disable=SC2086
  "$gemmtune" sweep $arguments --trials "$trials" --seed "$seed" \
    --search-seed "$([ "$search" = each ] && echo "$seed" || echo "$search")" --db "$folder/r$seed.db" --format csv \
    >"$folder/sweep$seed.csv" 2>"$folder/sweep$seed.log"
  grep "^GPU validating" "$folder/sweep$seed.log" | sed "s/^/seed $seed: /"
  if [ "$seed" -gt 1 ]; then databases="$databases --with $folder/r$seed.db"; fi
done
# shellcheck disable=SC2086
"$gemmtune" compare $arguments --no-library --db "$folder/r1.db" $databases --format csv >"$folder/together.csv"

# The configuration holds commas, but it is the last column.
awk -F, '
  function percentile(shape, share,   at, below) {
    at = 1 + share * (medians[shape] - 1)
    below = int(at)
    if (below == medians[shape]) return median[shape, below]
    return median[shape, below] + (at - below) * (median[shape, below + 1] - median[shape, below])
  }
  FNR == 1 { next }
  FILENAME ~ /sweep[0-9]+\.csv$/ {
    shape = $1 "x" $2 "x" $3
    for (i = ++medians[shape]; i > 1 && median[shape, i - 1] > $7; --i) median[shape, i] = median[shape, i - 1]
    median[shape, i] = $7
    next
  }
  {
    shape = $1 "x" $2 "x" $3
    if (!(shape in count)) order[++shapes] = shape
    ++count[shape]
    if (!(shape in slow) || $8 > slow[shape]) { slow[shape] = $8; slow_from[shape] = $9 }
    if (!(shape in fast) || $8 < fast[shape]) { fast[shape] = $8; fast_to[shape] = $10 }
  }
  END {
    printf "%-18s %8s %10s %10s %8s %8s  %-15s %s\n", "shape", "winners", "fastest us", "slowest us", "spread", "range", "slowest/fastest", "verdict"
    for (i = 1; i <= shapes; ++i) {
      s = order[i]
      low = median[s, 1]
      high = median[s, medians[s]]
      spread = (percentile(s, 0.75) - percentile(s, 0.25)) / percentile(s, 0.5)
      fails = slow[s] / fast[s] > 1.02 && slow_from[s] > fast_to[s]
      failed += fails
      printf "%-18s %8d %10.2f %10.2f %6.2f %% %6.2f %%  %-15.3f %s\n", s, count[s], low, high, 100 * spread, 100 * (high / low - 1), slow[s] / fast[s], fails ? "FAILS TO TIE" : "tie"
    }
    printf "%d of %d shapes fail to tie\n", failed, shapes
    exit failed > 0 ? 3 : 0
  }' "$folder"/sweep*.csv "$folder/together.csv"

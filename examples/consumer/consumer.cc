// Prints which kernel configuration a program would launch for the GEMM shapes on its command line, out of
// the table in an exported header. A real program would hand `winner->knobs` to its own launcher.
#include WINNERS_HEADER

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

namespace winners = gemmtune_winners;

/// Reads "4096x8192x1024".
static bool parse_shape(const char* text, std::int64_t (&shape)[3]) {
  for (int i = 0; i < 3; ++i) {
    char* end = nullptr;
    shape[i] = std::strtoll(text, &end, 10);
    if (end == text || shape[i] <= 0 || *end != (i < 2 ? 'x' : '\0')) return false;
    text = end + 1;
  }
  return true;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: consumer MxNxK...\n");
    return 2;
  }
  if (winners::kWinnerCount == 0) {
    std::fprintf(stderr, "the table is empty: tune first, then export again\n");
    return 1;
  }
  // One GPU architecture and one problem class; a real program knows its own.
  const winners::Winner& first = winners::kWinners[0];
  for (int i = 1; i < argc; ++i) {
    std::int64_t shape[3];
    if (!parse_shape(argv[i], shape)) {
      std::fprintf(stderr, "'%s' is not MxNxK\n", argv[i]);
      return 2;
    }
    winners::Nearest found =
        winners::nearest(first.arch, winners::DType::bf16, winners::DType::bf16, winners::Major::k,
                         winners::Major::k, false, shape[0], shape[1], shape[2]);
    const winners::Winner* w = found.winner;
    switch (found.match) {
      case winners::Match::exact:
        std::printf("%s: exact: %s %s, %.2f us measured on %s\n", argv[i], w->family, w->config, w->median_us,
                    w->device);
        break;
      case winners::Match::nearest_m:
        std::printf("%s: nearest_m, tuned for M = %" PRId64 ": %s %s, not measured for this shape\n", argv[i],
                    w->m, w->family, w->config);
        break;
      case winners::Match::none:
        std::printf("%s: none: no winner for this N and K\n", argv[i]);
        break;
    }
    if (w != nullptr)
      std::printf("  stages %d, tile_k %d, tile_n %d\n", w->knobs.stages, w->knobs.tile_k, w->knobs.tile_n);
  }
  return 0;
}

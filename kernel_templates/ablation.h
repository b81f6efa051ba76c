// Which part of its work an ablated variant keeps.
#pragma once

#include <string_view>

namespace gemmtune {

/// A kernel with one part of its work alone, to find what limits the whole (seed 000_b7f4eb2624be9cfc.txt,
/// section 10: "MMA-only 96.4 us, loads-only 417 us"). Barriers and walks stay. Its results are meaningless:
/// never validated, never stored, never a candidate.
enum class Ablation { none, mma, loads, epilogue };

/// "none", "mma", "loads", "epilogue".
std::string_view name(Ablation ablation);
/// One of "mma", "loads", "epilogue". Throws UsageError.
Ablation parse_ablation(std::string_view text);

}  // namespace gemmtune

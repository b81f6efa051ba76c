#include "db/stale_mark.h"

namespace gemmtune {

bool is_stale(const Winner& winner) { return winner.evidence.starts_with(kStale); }

std::string without_stale(const std::string& evidence) {
  if (!evidence.starts_with(kStale)) return evidence;
  size_t end = evidence.find("; ");
  return end == std::string::npos ? "" : evidence.substr(end + 2);
}

}  // namespace gemmtune

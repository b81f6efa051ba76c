// The hidden roles of this program: compile worker and GPU worker.
#pragma once
#include <string>
#include <vector>
namespace gemmtune {
/// `arguments`: internal-worker ROLE ARGUMENT.
int run_internal_worker(const std::vector<std::string>& arguments);
}  // namespace gemmtune

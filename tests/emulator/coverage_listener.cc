// Writes what each emulator test executed: <build>/coverage/<suite>.<test>.txt, one form a line. ctest runs
// every test in a process of its own, so a file a test needs no lock; form_coverage.cc reads them all.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>

#include "emulator/emulator.h"

namespace gemmtune::emulator {
namespace {

/// Tests that run damaged or random kernels only to see that nothing breaks prove nothing about a form's
/// result.
bool checks_results(const testing::TestInfo& test) {
  std::string_view suite = test.test_suite_name();
  return suite.find("BadInput") == suite.npos && suite.find("Fuzz") == suite.npos;
}

class CoverageListener : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override {
    forms_.clear();
    std::filesystem::remove(file_of(test));
    if (!checks_results(test)) return;
    observe_launches([this](const LaunchResult& result) {
      std::lock_guard lock(mutex_);
      for (const auto& [form, count] : result.executed) forms_.insert(form);
    });
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    observe_launches({});
    if (test.result()->Failed()) return;
    std::filesystem::create_directories(std::string(GEMMTUNE_BINARY_DIR) + "/coverage");
    std::ofstream out(file_of(test));
    for (const std::string& form : forms_) out << form << '\n';
  }

  static std::string file_of(const testing::TestInfo& test) {
    std::string name = std::string(test.test_suite_name()) + "." + test.name();
    for (char& c : name)
      if (c == '/') c = '_';
    return std::string(GEMMTUNE_BINARY_DIR) + "/coverage/" + name + ".txt";
  }

  std::mutex mutex_;
  std::set<std::string> forms_;
};

// Before main() of gtest_main: listeners that are there when RUN_ALL_TESTS starts are called.
const bool kRegistered = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new CoverageListener);
  return true;
}();

}  // namespace
}  // namespace gemmtune::emulator

// The cases of tests/hardware on the GPU that they were recorded on: the recorded bits, again. With
// GEMMTUNE_RECORD_HARDWARE=DIR it writes complete new files with what it saw to DIR instead; copying them to
// tests/hardware is all that is left to do:
//
//   mkdir seen && GEMMTUNE_RECORD_HARDWARE=$PWD/seen build/tests/gpu_tests
//   --gtest_filter='*HardwareCasesOnGpu*' cp seen/*.case tests/hardware/
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "gpu/device_info.h"
#include "tests/hardware/case_file.h"

namespace gemmtune {
namespace {

const std::string kFolder = std::string(GEMMTUNE_SOURCE_DIR) + "/tests/hardware";

struct CaseOutcome {
  std::vector<uint32_t> words;
  std::string failure = "was not reached";
};

/// Runs the cases from `first` on in a process of their own; the number of cases that are done.
size_t run_process(const std::string& path, size_t first, std::vector<CaseOutcome>& outcomes) {
  std::string command = fmt::format("timeout 120 '{}' hardware-cases '{}' {}",
                                    std::filesystem::canonical("/proc/self/exe").string(), path, first);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  size_t done = first;
  std::string line;
  for (int c; pipe && (c = fgetc(pipe.get())) != EOF;) {
    if (c != '\n') {
      line += static_cast<char>(c);
      continue;
    }
    std::istringstream words(line);
    std::string status;
    size_t index;
    if (words >> status >> index && index < outcomes.size()) {
      CaseOutcome& o = outcomes[index];
      if (status == "ok") {
        o.failure.clear();
        for (std::string word; words >> word;)
          o.words.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
      } else {
        o.failure = line;
      }
      done = index + 1;
    }
    line.clear();
  }
  if (done == first) {  // died or hung without a word
    outcomes[first].failure = "the process ended (a crash, or 120 s)";
    ++done;
  }
  return done;
}

class HardwareCasesOnGpu : public testing::TestWithParam<std::string> {};

TEST_P(HardwareCasesOnGpu, GiveTheRecordedBits) {
  GpuList list = list_gpus();
  if (list.gpus.empty() || list.gpus[0].record.arch != "sm_90a") GTEST_SKIP() << "no sm_90a GPU";
  const DeviceRecord& gpu = list.gpus[0].record;
  std::string path = kFolder + "/" + GetParam() + ".case";
  hardware::CaseFile file = hardware::read_case_file(path);
  std::vector<CaseOutcome> outcomes(file.cases.size());
  for (size_t done = 0; done < outcomes.size();) done = run_process(path, done, outcomes);
  const char* folder = std::getenv("GEMMTUNE_RECORD_HARDWARE");
  for (size_t i = 0; i < outcomes.size(); ++i) {
    hardware::Case& c = file.cases[i];
    EXPECT_EQ(outcomes[i].failure, "") << "case " << c.name;
    if (!outcomes[i].failure.empty()) {
      c.expected.clear();
      continue;
    }
    std::string difference = c.difference(outcomes[i].words);
    if (folder == nullptr)
      EXPECT_EQ(difference, "") << "case " << c.name;
    else if (!difference.empty())
      fmt::print("{}, case {}: {}\n", file.name, c.name, difference);
    c.expected = outcomes[i].words;
  }
  if (folder == nullptr) return;
  file.recorded = fmt::format("recorded on {}, driver {}, {:%Y-%m-%d}", gpu.name, gpu.driver_version,
                              fmt::gmtime(std::time(nullptr)));
  std::ofstream(std::filesystem::path(folder) / (file.name + ".case")) << hardware::case_file_text(file);
}

std::vector<std::string> file_names() {
  std::vector<std::string> names;
  for (const std::string& path : hardware::case_file_paths(kFolder))
    names.push_back(std::filesystem::path(path).stem());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, HardwareCasesOnGpu, testing::ValuesIn(file_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gemmtune

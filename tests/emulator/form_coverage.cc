// The last emulator test: every form that the front end accepts (emulator/forms.h) against the tests that
// executed it. Prints the table to <build>/coverage.txt and fails on a blank row. It judges only a complete
// run: where a registered test has left no record, or one older than the test program, it says so and is
// skipped.
//
// form_coverage TEST_PROGRAM RECORD_FOLDER TABLE_FILE
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/forms.h"

namespace gemmtune::emulator {
namespace {

/// Exit status that ctest knows as "skipped" (SKIP_RETURN_CODE).
constexpr int kSkipped = 77;

/// "Suite.Test" of every test in the program, from its own listing.
std::vector<std::string> registered_tests(const std::string& program) {
  std::string command = "'" + program + "' --gtest_list_tests";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> tests;
  std::string suite;
  char buffer[4096];
  while (pipe && fgets(buffer, sizeof buffer, pipe.get())) {
    std::string line(buffer);
    line = line.substr(0, line.find_first_of("#\n"));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (line.empty()) continue;
    if (line[0] != ' ')
      suite = line.back() == '.' ? line : "";
    else if (!suite.empty())
      tests.push_back(suite + line.substr(2));
  }
  return tests;
}

struct Row {
  int tests = 0;
  std::string first;
};

int run(const std::string& program, const std::string& folder, const std::string& table) {
  std::vector<std::string> tests = registered_tests(program);
  if (tests.empty()) {
    fmt::print("{} lists no tests\n", program);
    return 1;
  }
  auto built = std::filesystem::last_write_time(program);
  std::map<std::string, Row> covered;
  size_t missing = 0;
  std::string example;
  for (const std::string& test : tests) {
    std::string name = test;
    for (char& c : name)
      if (c == '/') c = '_';
    std::filesystem::path file = folder + "/" + name + ".txt";
    if (!std::filesystem::exists(file) || std::filesystem::last_write_time(file) < built) {
      if (missing++ == 0) example = test;
      continue;
    }
    std::ifstream in(file);
    std::map<std::string, bool> rows;
    for (std::string form; std::getline(in, form);)
      for (const std::string& row : rows_covered(form)) rows[row] = true;
    for (const auto& [row, yes] : rows) {
      Row& r = covered[row];
      if (r.tests++ == 0) r.first = test;
    }
  }
  if (missing) {
    fmt::print(
        "[  SKIPPED ] {} of {} emulator tests have not run in this build (or failed), {} for one: the table "
        "of forms needs them all\n",
        missing, tests.size(), example);
    return kSkipped;
  }
  std::vector<std::string> rows = form_rows();
  std::ofstream out(table);
  std::vector<std::string> blank;
  for (const std::string& row : rows) {
    const Row& r = covered[row];
    out << fmt::format("{:<110} {:>4}  {}\n", row, r.tests, r.tests ? r.first : "-");
    if (r.tests == 0) blank.push_back(row);
  }
  for (const std::string& row : blank) fmt::print("no test executes: {}\n", row);
  fmt::print("{} rows of accepted instruction forms, {} without a test; table in {}\n", rows.size(),
             blank.size(), table);
  return blank.empty() ? 0 : 1;
}

}  // namespace
}  // namespace gemmtune::emulator

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print("usage: form_coverage TEST_PROGRAM RECORD_FOLDER TABLE_FILE\n");
    return 2;
  }
  return gemmtune::emulator::run(argv[1], argv[2], argv[3]);
}

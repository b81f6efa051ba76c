// Exports: the header is compiled by the system's compiler, and every lookup compared with the database.
#include "db/export.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "db/winners.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

const std::vector<Knob> kSm90Knobs = {
    {"stages", {2, 4, 6}, 4, "depth of the ring\n*/ \\", {}, true},
    {"swizzle_a", {0, 128}, 128, "swizzle of A", {"none", "128B"}, true},
    {"static", {0, 1}, 0, "a keyword?\?/", {"no", "yes"}, true},
};
const std::vector<Knob> kSm100Knobs = {{"stages", {2, 4, 6}, 4, "depth", {}, true},
                                       {"cta_group", {1, 2}, 1, "CTAs per MMA", {}, true}};

const std::vector<Knob>* knobs_of(std::string_view family) {
  return family == "sm90_gemm" ? &kSm90Knobs : family == "sm100_gemm" ? &kSm100Knobs : nullptr;
}

const Provenance kProvenance{"0.1.0\\", "a\nb?\?/.db", "2025-01-31T12:00:00Z"};
constexpr const char* kFlags = "-std=c++17 -Wall -Wextra -Werror -pedantic -Wshadow -Wconversion";

class ExportTest : public DbTest {
 protected:
  ExportTest() : store_(path()) {}

  void add(const Problem& p, const std::string& config, double us, const DeviceRecord& device = h200(),
           const std::string& family = "sm90_gemm") {
    Trial trial = ok_trial(p, config, {us});
    trial.arch = device.arch;
    trial.family = family;
    store_.record_trial(trial, store_.device_id(device));
    refresh();
  }
  void refresh() {
    refresh_winners(store_, [](std::string_view, std::string_view) { return 0; });
  }
  /// Many classes and shapes, two architectures, awkward names.
  void fill() {
    DeviceRecord b200{"GPU-\"b\"",
                      "NVIDIA \"B200\"\\?\?/\n\xc3\xa9"
                      "1",
                      "sm_100a",
                      148,
                      1 << 27,
                      1'965'000,
                      "580"};
    double us = 3;
    for (const char* cls : {"bf16-bf16-kk", "f16-f32-mk", "f16-f16-kn-beta", "bf16-f32-mn"})
      for (int64_t m : {1, 64, 8192})
        for (int64_t n : {4096, 2147483647}) {
          us += 1.0 / 3;
          add({parse_problem_class(cls), {m, n, 4096}},
              m == 64 ? "stages=6" : "stages=2,swizzle_a=none,static=yes", us);
          add({parse_problem_class(cls), {m, n, 4096}}, "stages=4,cta_group=2", us / 2, b200, "sm100_gemm");
        }
  }
  std::vector<ExportRow> rows() { return exportable_winners(store_, {}).rows; }

  void write(const std::string& name, const std::string& text) { std::ofstream(path(name)) << text; }

  /// Output of a program around the header; fails the test when it does not compile.
  std::string compile_and_run(const std::string& header, const std::string& main_body) {
    write("winners.h", header);
    // Twice, and first: self-contained and guarded.
    write("other.cc",
          "#include \"winners.h\"\n#include \"winners.h\"\n"
          "const void* other() { return gemmtune_winners::kWinners; }\n");
    write("main.cc",
          "#include \"winners.h\"\n#include <cstdio>\nusing namespace gemmtune_winners;\n"
          "const void* other();\n" +
              main_body);
    std::string compile =
        fmt::format("cd {} && {{ c++ {} main.cc other.cc -o main; }} 2>&1", folder_.string(), kFlags);
    std::string output = run(compile);
    EXPECT_EQ(output, "");
    return run(fmt::format("{}/main", folder_.string()));
  }
  std::string run(const std::string& command) {
    FILE* pipe = popen(command.c_str(), "r");
    std::string output;
    char buffer[4096];
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, got);
    EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output;
    return output;
  }

  static std::string arguments(const std::string& arch, const Problem& p) {
    auto major = [](Major m) { return m == Major::k ? "Major::k" : "Major::mn"; };
    return fmt::format("\"{}\", DType::{}, DType::{}, {}, {}, {}, {}, {}, {}", arch, name(p.cls.in),
                       name(p.cls.out), major(p.cls.a_major), major(p.cls.b_major), p.cls.beta, p.shape.m,
                       p.shape.n, p.shape.k);
  }

  Store store_;
};

TEST_F(ExportTest, EveryLookupOfTheHeaderAgreesWithTheDatabase) {
  fill();
  std::vector<ExportRow> expected = rows();
  ASSERT_EQ(expected.size(), 48u);
  std::string header = to_header(expected, kProvenance, knobs_of);
  std::string body =
      "void show(const Winner* w) {\n  if (w == nullptr) { std::puts(\"none\"); return; }\n"
      "  std::printf(\"%s|%s|%.17g|%s|%d|%d\\n\", w->family, w->config, w->median_us, w->device, "
      "w->knobs.stages, static_cast<int>(w->regime));\n}\nint main() {\n";
  std::string answers;
  for (const ExportRow& row : expected) {
    body += fmt::format("  show(find({}));\n", arguments(row.arch, row.problem));
    std::string stages = row.arch == "sm_100a" ? "4" : row.problem.shape.m == 64 ? "6" : "2";
    answers += fmt::format("{}|{}|{:.17g}|{}|{}|0\n", row.family, row.config, row.median_us, row.device.name,
                           stages);
    Problem other = row.problem;
    other.shape.k += 1;
    body += fmt::format("  show(find({}));\n", arguments(row.arch, other));
    answers += "none\n";
    other = row.problem;
    other.cls.beta = !other.cls.beta;
    body += fmt::format("  show(find({}));\n  show(find({}));\n", arguments(row.arch, other),
                        arguments("sm_103a", row.problem));
    answers += "none\nnone\n";
  }
  body +=
      "  return other() == kWinners ? 0 : 1;\n}\n";  // one table in the program, not one a translation unit
  EXPECT_EQ(compile_and_run(header, body), answers);
}

TEST_F(ExportTest, NearestSaysHowNear) {
  for (int64_t m : {8, 32, 100}) add(problem(m), "stages=6", 10);
  std::string body =
      "constexpr Nearest at(long long m, long long n = 4096) {\n  return nearest(\"sm_90a\", DType::bf16, "
      "DType::bf16, Major::k, Major::k, false, m, n, 4096);\n}\nint main() {\n"
      "  static_assert(at(8).match == Match::exact && at(8).winner->m == 8, \"\");\n"
      "  static_assert(at(16).match == Match::nearest_m && at(16).winner->m == 32, \"\");\n"  // 2 both ways
      "  static_assert(at(15).match == Match::nearest_m && at(15).winner->m == 8, \"\");\n"
      "  static_assert(at(1).match == Match::nearest_m && at(1).winner->m == 8, \"\");\n"
      "  static_assert(at(1000000).winner->m == 100, \"\");\n"
      "  static_assert(at(8, 4097).match == Match::none && at(8, 4097).winner == nullptr, \"\");\n"
      "  static_assert(at(0).match == Match::none && at(-5).match == Match::none, \"\");\n"
      "  static_assert(at(8).winner->knobs.swizzle_a == 128, \"default of a knob younger than the row\");\n"
      "  static_assert(at(8).winner->knobs.static_ == 0, \"keyword\");\n"
      "  return other() == nullptr;\n}\n";
  EXPECT_EQ(compile_and_run(to_header(rows(), kProvenance, knobs_of), body), "");
}

TEST_F(ExportTest, KnobsOfAnotherFamilyAreAbsent) {
  fill();
  std::string body =
      "int main() {\n"
      "  constexpr const Winner* a = find(\"sm_100a\", DType::bf16, DType::bf16, Major::k, Major::k, "
      "false, 1, 4096, 4096);\n"
      "  static_assert(a->knobs.cta_group == 2 && a->knobs.swizzle_a == kAbsent, \"\");\n"
      "  constexpr const Winner* b = find(\"sm_90a\", DType::bf16, DType::bf16, Major::k, Major::k, "
      "false, 1, 4096, 4096);\n"
      "  static_assert(b->knobs.cta_group == kAbsent && b->knobs.swizzle_a == 0 && b->knobs.static_ == 1, "
      "\"\");\n  return 0;\n}\n";
  EXPECT_EQ(compile_and_run(to_header(rows(), kProvenance, knobs_of), body), "");
}

TEST_F(ExportTest, AnEmptyTableCompilesToo) {
  std::string body =
      "int main() {\n  static_assert(kWinnerCount == 0, \"\");\n"
      "  static_assert(find(\"sm_90a\", DType::bf16, DType::bf16, Major::k, Major::k, false, 0, 0, 0) == "
      "nullptr, \"\");\n"
      "  static_assert(nearest(\"sm_90a\", DType::bf16, DType::bf16, Major::k, Major::k, false, 1, 1, 1)"
      ".match == Match::none, \"\");\n  return 0;\n}\n";
  EXPECT_EQ(compile_and_run(to_header({}, kProvenance, knobs_of), body), "");
}

TEST_F(ExportTest, AFamilyThisBuildDoesNotKnow) {
  add(problem(), "stages=6,odd-name=3,word=yes", 10, h200(), "lost_family");
  std::string body =
      "int main() {\n  static_assert(kWinners[0].knobs.stages == 6 && kWinners[0].knobs.odd_name == 3, \"\");"
      "\n  return 0;\n}\n";
  EXPECT_EQ(compile_and_run(to_header(rows(), kProvenance, knobs_of), body), "");
}

TEST_F(ExportTest, AValueThatIsNoLongerKnownIsAnError) {
  add(problem(), "stages=6,swizzle_a=96B", 10);
  std::string message = message_of<EnvironmentError>([&] { to_header(rows(), kProvenance, knobs_of); });
  EXPECT_NE(message.find("swizzle_a"), std::string::npos) << message;
}

TEST_F(ExportTest, ProvenanceIsInTheComments) {
  store_.put_kernel(kernel("key", "stages=4"));
  Trial trial = ok_trial(problem(), "stages=4", {10, 11});
  trial.kernel_key = "key";
  store_.record_trial(trial, store_.device_id(h200()));
  refresh();
  std::string header = to_header(rows(), kProvenance, knobs_of);
  for (const char* part : {"gemmtune 0.1.0", "NVIDIA H200", "580.95", "nvrtc 13.0.88", "p1 burst, cold L2",
                           "2025-01-31T12:00:00Z", "validated by gpu in 1 cases (sharp)", "2 samples"})
    EXPECT_NE(header.find(part), std::string::npos) << part;
  ExportRow row = rows().at(0);
  EXPECT_NE(header.find(row.measured_at), std::string::npos);
}

TEST_F(ExportTest, LeavesOutWhatCannotBeStoodBehind) {
  add(problem(1), "stages=4", 10);
  add(problem(2), "stages=4", 10);
  add(problem(3), "stages=4", 10);
  store_.record_trial(ok_trial(problem(1), "stages=6", {9}), 1);  // due
  store_.connection().execute(
      "UPDATE trial SET validation = replace(validation, '\"mismatches\":0', "
      "'\"mismatches\":1') WHERE problem_id = 2; DELETE FROM winner_due WHERE problem_id = 2");
  Exportable exportable = exportable_winners(store_, {});
  ASSERT_EQ(exportable.rows.size(), 1u);
  EXPECT_EQ(exportable.rows[0].problem, problem(3));
  ASSERT_EQ(exportable.skipped.size(), 2u);
  EXPECT_NE(exportable.skipped[0].find("trials came in"), std::string::npos);
  EXPECT_NE(exportable.skipped[1].find("evidence"), std::string::npos);
}

TEST_F(ExportTest, OneKeyOneWinner) {
  add(problem(), "stages=4", 10);
  DeviceRecord newer = h200();
  newer.driver_version = "590";
  add(problem(), "stages=6", 12, newer);
  store_.connection().execute("UPDATE winner SET updated_at = '2999' WHERE device_id = 2");
  Exportable exportable = exportable_winners(store_, {});
  ASSERT_EQ(exportable.rows.size(), 1u);
  EXPECT_EQ(exportable.rows[0].device.driver_version, "590");
  EXPECT_EQ(exportable.skipped.size(), 1u);
  DeviceRecord h100 = h200("GPU-9");
  h100.name = "NVIDIA H100";
  add(problem(), "stages=2", 12, h100);
  std::string message = message_of<UsageError>([&] { exportable_winners(store_, {}); });
  EXPECT_NE(message.find("--device"), std::string::npos) << message;
  EXPECT_EQ(exportable_winners(store_, {.device_name = "NVIDIA H100"}).rows.size(), 1u);
  EXPECT_EQ(exportable_winners(store_, {.regime = Regime::sustained}).rows.size(), 0u);
}

TEST_F(ExportTest, JsonHoldsEveryRow) {
  fill();
  std::vector<ExportRow> expected = rows();
  auto json = nlohmann::json::parse(to_json(expected, kProvenance));
  EXPECT_EQ(json["gemmtune"], kProvenance.tool_version);
  ASSERT_EQ(json["winners"].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& w = json["winners"][i];
    EXPECT_EQ(w["m"], expected[i].problem.shape.m);
    EXPECT_EQ(w["n"], expected[i].problem.shape.n);
    EXPECT_EQ(w["median_us"], expected[i].median_us);
    EXPECT_EQ(w["config_text"], expected[i].config);
    EXPECT_TRUE(w["config"]["stages"].is_number());
    EXPECT_EQ(w["device"], expected[i].device.name);
    EXPECT_TRUE(w["ratio_low"].is_null());
  }
}

TEST_F(ExportTest, CsvHasAColumnPerKnobAndQuotes) {
  fill();
  std::string csv = to_csv(rows());
  EXPECT_EQ(
      csv.substr(0, csv.find('\n')),
      "arch,in,out,a_major,b_major,beta,m,n,k,family,stages,cta_group,swizzle_a,static,median_us,tflops,"
      "samples,"
      "tie_set,ratio_low,ratio_high,device,device_uuid,driver,toolchain,regime,protocol,warm_l2,validated_by,"
      "evidence,measured_at");
  EXPECT_NE(csv.find("\nsm_90a,bf16,bf16,k,k,0,1,4096,4096,sm90_gemm,2,,none,yes,"), std::string::npos)
      << csv;
  EXPECT_NE(csv.find(",\"GPU-\"\"b\"\"\","), std::string::npos);
  // Rows and fields, outside of quotes.
  size_t lines = 0, commas = 0;
  bool quoted = false;
  for (char c : csv) {
    quoted ^= c == '"';
    lines += !quoted && c == '\n';
    commas += !quoted && c == ',';
  }
  EXPECT_EQ(lines, 49u);
  EXPECT_EQ(commas, 49u * 29);
}

}  // namespace
}  // namespace gemmtune

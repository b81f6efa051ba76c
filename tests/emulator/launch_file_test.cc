// Launch files: what a wrong one says, and that a right one runs TMA with maps and all kinds of parameters.
#include <gtest/gtest.h>

#include "emulator/element.h"
#include "emulator/launch_run.h"
#include "emulator/trace.h"
#include "gemm/error.h"
#include "tests/emulator/tma_copy.h"

namespace gemmtune::emulator {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_launch_file(text, "f.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

/// A valid file with `replace` in place of the buffer, map or params.
std::string launch(const std::string& buffer, const std::string& map = "", const std::string& params = "") {
  return R"({"grid": 1, "block": 32, "buffers": {"a": )" + buffer + "}, \"tensor_maps\": {" + map +
         "}, \"params\": [" + params + "]}";
}

TEST(LaunchFile, SaysWhatIsWrong) {
  const std::string a = R"({"type": "f16", "shape": [8, 64]})";
  const std::pair<std::string, std::string> table[] = {
      {launch(a), "accepted"},
      {"[]", "f.json: expected an object"},
      {"{}", "f.json: 'grid' is missing"},
      {"nonsense", "f.json: not JSON"},
      {R"({"grid": 1e999})", "f.json: not JSON"},
      {launch(R"({"shape": [1]})"), "f.json.buffers.a: 'type' is missing"},
      {launch(R"({"type": "f17", "shape": [1]})"),
       "f.json.buffers.a.type: unknown 'f17' (did you mean 'f16'?)"},
      {launch(R"({"type": "f16", "shape": [0]})"), "f.json.buffers.a.shape[0]: 0 is not 1 to"},
      {launch(R"({"type": "f16", "shape": [4294967296, 4294967296, 4294967296]})"), "larger than 4 GiB"},
      {launch(R"({"type": "f16", "shape": "x"})"), "f.json.buffers.a.shape: expected a list"},
      {launch(R"({"type": "f16", "shape": [1], "fill": "zeroes"})"), "(did you mean 'zeros'?)"},
      {launch(R"({"type": "f16", "shape": [1], "fill": {"integers": [3, 2]}})"), "2 is not 3 to"},
      {launch(R"({"type": "f16", "shape": [1], "fill": {"values": []}})"), "the list is empty"},
      {launch(R"({"type": "f16", "shape": [1], "fill": {"values": [1], "normal": true}})"),
       "expected one of integers, normal, values, file"},
      {launch(R"({"type": "f16", "shape": [1], "expect": {"gemm": {"a": "a"}}})"), "'b' is missing"},
      {launch(R"({"type": "f16", "shape": [1], "expect": {"gemm": {"a": "a", "b": "x"}}})"), "no buffer 'x'"},
      {launch(R"({"type": "f16", "shape": [1], "expect": {"values": [1], "tolerance": -1}})"),
       "must not be negative"},
      {launch(a, R"("m": {"buffer": "b", "dims": [64], "box": [64]})"), "no buffer 'b'"},
      {launch(a, R"("m": {"buffer": "a", "dims": [64, 8], "box": [64]})"), "box: expected 2 numbers"},
      {launch(a, R"("m": {"buffer": "a", "dims": [], "box": []})"), "expected one to five numbers"},
      {launch(a, R"("m": {"buffer": "a", "dims": [64, 8], "box": [64, 8], "swizzle": "128"})"),
       "(did you mean '128B'?)"},
      {launch(a, "", R"({"u32": 1.5})"), "does not fit the type"},
      {launch(a, "", R"({"u8": 256})"), "does not fit the type"},
      {launch(a, "", R"({"u64": -1})"), "expected an integer from 0"},
      {launch(a, "", R"({"bytes": "0"})"), "two hexadecimal digits"},
      {launch(a, "", R"({"bytes": "0g"})"), "hexadecimal digits"},
      {launch(a, "", R"({})"), "expected one value"},
      {launch(a, "", R"({"buffer": "b"})"), "params[0]: no buffer 'b' (did you mean 'a'?)"},
      {launch(a, "", R"({"tensor_map": "m"})"), "no tensor map 'm'"},
      {launch(a, "", R"({"u32": 1, "offset_bytes": 4})"), "only buffers have one"},
      {launch(a, "", "3"), "f.json.params[0]: expected an object"},
  };
  for (const auto& [text, want] : table)
    EXPECT_NE(refusal(text).find(want), std::string::npos) << text << "\n" << refusal(text);
}

std::string tma_file(const std::string& expect) {
  return R"({"kernel": "copy", "grid": 1, "block": 32,
    "buffers": {"a": {"type": "u16", "shape": [16, 64], "fill": "iota"},
                "out": {"type": "u16", "shape": [8, 64])" +
         expect + R"(}},
    "tensor_maps": {"m": {"buffer": "a", "dims": [64, 16], "box": [64, 8], "swizzle": "128B"}},
    "params": [{"tensor_map": "m"}, {"buffer": "out"},
               [{"u32": 7, "at_byte": 0}, {"s32": 0}, {"s32": 12}]]})";
}

TEST(LaunchRun, TensorMapStructAndScalarsReachTheKernel) {
  Module module(kTmaCopy);
  // Rows 12 to 15, then four of zeros from outside; 16-byte units of row r are XORed with r mod 8.
  std::string values;
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 64; ++column) {
      int logical = (column / 8 ^ row) * 8 + column % 8;
      values += (values.empty() ? "" : ", ") + std::to_string(row < 4 ? (12 + row) * 64 + logical : 0);
    }
  LaunchFile file = parse_launch_file(tma_file(", \"expect\": {\"values\": [" + values + "]}"), "f.json");
  LaunchRun run(file, module);
  for (SchedulePolicy policy : {SchedulePolicy::eager, SchedulePolicy::lazy, SchedulePolicy::random}) {
    LaunchConfig how;
    how.schedule = {policy, 3};
    LaunchResult result = run.run(how);
    EXPECT_TRUE(result.clean()) << result.text();
    std::vector<BufferCheck> checks = run.compare();
    ASSERT_EQ(checks.size(), 1u);
    EXPECT_EQ(checks[0].mismatches, 0) << checks[0].first_mismatch;
  }
}

TEST(LaunchRun, NamesTheFirstMismatch) {
  Module module(kTmaCopy);
  LaunchRun run(parse_launch_file(tma_file(", \"expect\": {\"values\": [768]}"), "f.json"), module);
  run.run({});
  std::vector<BufferCheck> checks = run.compare();
  EXPECT_EQ(checks[0].mismatches, 511);
  EXPECT_EQ(checks[0].first_mismatch, "[0, 1]: got 769, want 768");
}

TEST(LaunchRun, RefusesParametersThatDoNotFit) {
  Module module(kTmaCopy);
  auto refused = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = tma_file("");
    text.replace(text.find(from), from.size(), to);
    try {
      LaunchRun run(parse_launch_file(text, "f.json"), module);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refused(R"({"buffer": "out"},)", "").find("has 3 parameters, the launch file gives 2"),
            std::string::npos);
  EXPECT_NE(refused(R"({"buffer": "out"})", R"({"u32": 1})").find("params[1]: 4 bytes, the kernel's"),
            std::string::npos);
  EXPECT_NE(refused(R"("at_byte": 0)", R"("at_byte": 8)").find("do not fit the parameter's 16"),
            std::string::npos);
  EXPECT_NE(refused(R"("box": [64, 8])", R"("box": [128, 8])").find("exceeds the swizzle span"),
            std::string::npos);
  EXPECT_NE(refused(R"("copy")", R"("cpy")").find("no kernel 'cpy'"), std::string::npos);
}

TEST(LaunchTrace, PairsWhatBeginsWithWhatEnds) {
  Module module(kTmaCopy);
  LaunchRun run(parse_launch_file(tma_file(""), "f.json"), module);
  Trace trace;
  LaunchConfig how;
  how.schedule = {SchedulePolicy::lazy, 0};
  how.trace = trace.recorder();
  run.run(how);
  std::string text = trace.timeline();
  EXPECT_NE(text.find("TMA load of 1024 bytes to 0x"), std::string::npos) << text;
  EXPECT_NE(text.find("wait for mbarrier"), std::string::npos) << text;
  EXPECT_NE(text.find("phase 0 complete"), std::string::npos) << text;
  EXPECT_EQ(text.find("never"), std::string::npos) << text;
  EXPECT_NE(trace.timeline(1).find("more"), std::string::npos);
  std::string json = trace.chrome_json();
  for (const char* part : {R"("ph":"b")", R"("ph":"e")", R"("ph":"X")", R"("ph":"i")", "ptx_line"})
    EXPECT_NE(json.find(part), std::string::npos) << part;
}

TEST(Elements, RoundAndClamp) {
  uint8_t raw[8] = {};
  auto through = [&](ScalarType type, double value) {
    store_element(type, value, raw);
    return load_element(type, raw);
  };
  EXPECT_EQ(through(ScalarType::bf16, 257), 256);
  EXPECT_EQ(through(ScalarType::f16, 2049), 2048);
  EXPECT_EQ(through(ScalarType::e4m3, 17), 16);
  EXPECT_EQ(through(ScalarType::s8, 300), 127);
  EXPECT_EQ(through(ScalarType::s8, -300), -128);
  EXPECT_EQ(through(ScalarType::u32, -1), 0);
  EXPECT_EQ(through(ScalarType::s64, -5), -5);
  EXPECT_EQ(through(ScalarType::f64, 1e300), 1e300);
  EXPECT_FALSE(is_element(ScalarType::pred));
  EXPECT_FALSE(is_element(ScalarType::b32));
}

}  // namespace
}  // namespace gemmtune::emulator

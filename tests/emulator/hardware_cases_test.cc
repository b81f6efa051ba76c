// The cases of tests/hardware on the emulator: the recorded bits, under two orders of asynchronous work.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "emulator/emulator.h"
#include "emulator/program.h"
#include "tests/hardware/case_file.h"

namespace gemmtune::emulator {
namespace {

using hardware::Case;
using hardware::CaseFile;

const std::string kFolder = std::string(GEMMTUNE_SOURCE_DIR) + "/tests/hardware";

uint64_t upload(Device& device, const std::vector<uint8_t>& bytes) {
  uint64_t address = device.allocate(bytes.size());
  device.copy_in(address, bytes);
  return address;
}

TensorMapBytes encoded(const hardware::Map& map, uint64_t address) {
  TensorMap out;
  out.type = static_cast<TensorType>(map.type);
  out.rank = map.rank;
  out.address = address + map.offset_bytes;
  out.dims = map.dims;
  out.strides_bytes = map.strides_bytes;
  out.box = map.box;
  out.element_strides = map.element_strides;
  out.interleave = static_cast<TensorInterleave>(map.interleave);
  out.swizzle = static_cast<TensorSwizzle>(map.swizzle);
  out.nan_fill = map.nan_fill;
  return encode_tensor_map(out, false);
}

/// Throws PtxError; an unclean launch is the other failure.
std::vector<uint32_t> run(const Case& c, const Schedule& schedule) {
  Module module(c.ptx());
  Device device;
  std::vector<uint8_t> output = c.initial_output();
  uint64_t in = upload(device, c.operands()), memory = upload(device, c.memory()),
           out = upload(device, output);
  LaunchConfig config;
  config.kernel = "test";
  config.grid = {c.grid[0], c.grid[1], c.grid[2]};
  config.block = {c.block[0], c.block[1], c.block[2]};
  config.cluster = {c.cluster[0], c.cluster[1], c.cluster[2]};
  config.dynamic_smem_bytes = c.smem_bytes;
  config.schedule = schedule;
  config.livelock_instructions = 100'000;
  const Function& f = *module.program().find_entry("test");
  config.params.resize(f.param_bytes);
  for (uint64_t* value : {&in, &memory, &out})
    std::memcpy(config.params.data() + 8 * (value == &in ? 0 : value == &memory ? 1 : 2), value, 8);
  for (size_t i = 0; i < c.maps.size(); ++i) {
    TensorMapBytes bytes = encoded(c.maps[i], c.maps[i].at_out ? out : memory);
    std::memcpy(config.params.data() + f.params[3 + i].offset, bytes.data(), bytes.size());
  }
  LaunchResult result = device.launch(module, config);
  EXPECT_TRUE(result.clean()) << result.text();
  device.copy_out(out, output);
  std::vector<uint32_t> words(output.size() / 4);
  std::memcpy(words.data(), output.data(), output.size());
  return words;
}

class HardwareCases : public testing::TestWithParam<std::string> {};

/// GEMMTUNE_FILL_HARDWARE=DIR: cases that nobody has recorded yet get the emulator's values, to have
/// something to compare with the hardware's; files are written to DIR.
bool fill_in(CaseFile file) {
  const char* folder = std::getenv("GEMMTUNE_FILL_HARDWARE");
  if (folder == nullptr) return false;
  if (file.recorded != "not yet recorded") return true;
  for (Case& c : file.cases) {
    SCOPED_TRACE("case " + c.name);
    try {
      c.expected = run(c, {SchedulePolicy::eager, 0});
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  std::ofstream(std::filesystem::path(folder) / (file.name + ".case")) << hardware::case_file_text(file);
  return true;
}

TEST_P(HardwareCases, GiveTheRecordedBits) {
  CaseFile file = hardware::read_case_file(kFolder + "/" + GetParam() + ".case");
  if (fill_in(file)) return;
  for (Case& c : file.cases) {
    SCOPED_TRACE("case " + c.name);
    try {
      for (const Schedule& schedule :
           {Schedule{SchedulePolicy::eager, 0}, Schedule{SchedulePolicy::random, 3}}) {
        std::vector<uint32_t> got = run(c, schedule);
        std::string difference = c.difference(got);
        EXPECT_EQ(difference, "");
        if (!difference.empty()) break;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_FALSE(file.cases.empty());
}

TEST_P(HardwareCases, FileIsWrittenAsItIsRead) {
  std::string path = kFolder + "/" + GetParam() + ".case";
  std::ifstream in(path);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(hardware::case_file_text(hardware::read_case_file(path)), text);
}

TEST(HardwareCaseFile, Difference) {
  Case c;
  c.expected = {0x3f800000, 0x00000001, 0x7fffffff};
  EXPECT_EQ(c.difference({0x3f800000, 0x00000001, 0x7fffffff}), "");
  EXPECT_EQ(c.difference({0x3f800000, 0x80000001, 0x7fc00000}),
            "2 of 3 words differ, first word 1: 80000001, recorded 00000001");
  EXPECT_EQ(c.difference({0x3f800000}), "1 words instead of 3");
  c.tolerance.ulp = 2;
  EXPECT_EQ(c.difference({0x3f800002, 0x80000001, 0x7fc00000}), "");
  EXPECT_NE(c.difference({0x3f800003, 0x00000001, 0x7fffffff}), "");
  c.tolerance.absolute = 1e-6;
  EXPECT_EQ(c.difference({0x3f800003, 0x00000001, 0x7fffffff}), "");
  EXPECT_NE(c.difference({0x3f800003, 0x00000001, 0x3f800000}), "");
  c.tolerance = {};
  c.tolerance.ulp64 = 1;
  c.expected = {0xffffffff, 0x3fefffff};
  EXPECT_EQ(c.difference({0x00000000, 0x3ff00000}), "");
  EXPECT_NE(c.difference({0x00000001, 0x3ff00000}), "");
}

std::vector<std::string> file_names() {
  std::vector<std::string> names;
  for (const std::string& path : hardware::case_file_paths(kFolder))
    names.push_back(std::filesystem::path(path).stem());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, HardwareCases, testing::ValuesIn(file_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gemmtune::emulator

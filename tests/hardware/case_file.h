// Tiny PTX cases that give the same bits on an H200 and on the emulator. Both test programs read these files;
// the GPU one can write them again with what it saw (GEMMTUNE_RECORD_HARDWARE,
// tests/gpu/hardware_cases_test.cc).
//
// A file is a heading of '#' lines, a line "recorded on <device>, <driver>, <date>" (or "not yet recorded"),
// and cases:
//
//   case add.sat.s32
//   a ints                 operands: 64-bit la (a: low half, ha: low 16 bits) from a data set, one value a
//   thread; b ints 7               the number turns the set, so that a and b pair up differently ptx
//     add.sat.s32 d, a, b;
//   result d               registers that are returned: a word each (64-bit ones two, predicates 0 or 1);
//   fold:o:64 is
//                          one word made of o0 to o63
//   expect
//     00000000 00000001 ...
//   end
//
// Optional lines: grid, block, cluster X [Y [Z]]; smem BYTES (dynamic, named raw, registers sraw holds its
// address); memory SET BYTES (register pmem); out BYTES [SET] (register pout; body stores there itself;
// initial content ff or a set); map NAME key=value .. (parameter NAME, register pNAME holds its generic
// address); tolerance ulp N | ulp64 N | abs X; module, before ptx: PTX in front of the kernel.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gemmtune::hardware {

/// One operand: value i is set(i * step + turn).
struct Input {
  std::string name;  ///< a, b, c
  std::string set;
  uint32_t turn = 0;
};

/// Arguments of cuTensorMapEncodeTiled by cuda.h's numbers, index 0 innermost.
struct Map {
  std::string name;
  bool at_out = false;  ///< else at memory
  uint32_t offset_bytes = 0;
  uint32_t type = 0, rank = 0, interleave = 0, swizzle = 0;
  bool nan_fill = false;
  std::array<uint64_t, 5> dims{};
  std::array<uint64_t, 4> strides_bytes{};
  std::array<uint32_t, 5> box{}, element_strides{1, 1, 1, 1, 1};
};

/// How far a value may lie from the recorded one: within either bound. Zero: the same bits.
struct Tolerance {
  double ulp = 0, ulp64 = 0;  ///< steps of f32 words, of f64 pairs of words
  double absolute = 0;        ///< f32
};

struct Case {
  std::string name;
  std::vector<std::string> lines;  ///< all but the expected values, as written
  std::array<uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
  uint32_t smem_bytes = 0;
  std::vector<Input> inputs;
  std::string memory_set, out_set;
  uint32_t memory_bytes = 0, out_bytes = 0;
  std::vector<Map> maps;
  std::vector<std::string> results;
  Tolerance tolerance;
  std::string module_text, body;  ///< shared texts included
  std::vector<uint32_t> expected;

  uint32_t threads() const { return grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2]; }
  uint32_t words_per_thread() const;
  /// Bytes of the output buffer.
  uint32_t output_bytes() const;
  /// The whole PTX module; its kernel "test" takes in, memory, out and the maps.
  std::string ptx() const;
  /// Contents of the buffers before the launch.
  std::vector<uint8_t> operands() const, memory() const, initial_output() const;
  /// Empty if `got` are the expected words within the tolerance, else the first difference and their number.
  std::string difference(const std::vector<uint32_t>& got) const;
};

/// PTX that several cases of a file share.
struct SharedText {
  std::string name, text;
};

struct CaseFile {
  std::string name;                  ///< "integer"
  std::vector<std::string> heading;  ///< '#' lines
  std::string recorded;              ///< "recorded on ..." or "not yet recorded"
  std::vector<SharedText> texts;
  std::vector<Case> cases;
};

/// Throws std::runtime_error with file and line.
CaseFile read_case_file(const std::string& path);
std::string case_file_text(const CaseFile& file);
/// Every file of the folder tests/hardware, sorted.
std::vector<std::string> case_file_paths(const std::string& folder);

/// Value `index` of a named data set (data_sets.cc). Throws std::runtime_error for an unknown name.
uint64_t data_value(const std::string& set, uint64_t index);

}  // namespace gemmtune::hardware

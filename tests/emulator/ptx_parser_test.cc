// What the parser makes of declarations, operands and scopes, and what it refuses.
// Damaged text at large: bad_input_test.cc.
#include "emulator/ptx_parser.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "emulator/error.h"

namespace gemmtune::emulator {
namespace {

const char kHead[] = ".version 9.0\n.target sm_100a\n.address_size 64\n";

class PtxParserTest : public testing::Test {
 protected:
  const ParsedModule& parse(const std::string& body) {
    text_ = kHead + body;
    module_ = parse_ptx(text_);
    return module_;
  }
  template <class T>
  static std::vector<T> values(const Variable& v) {
    std::vector<T> values(v.init.size() / sizeof(T));
    std::memcpy(values.data(), v.init.data(), v.init.size());
    return values;
  }
  static std::vector<std::string> names(const std::vector<Variable>& variables) {
    std::vector<std::string> names;
    for (const Variable& v : variables) names.push_back(v.name);
    return names;
  }

 private:
  std::string text_;  ///< into which module_ points
  ParsedModule module_;
};

TEST_F(PtxParserTest, AListSharesWhatStandsBeforeIt) {
  const ParsedModule& m = parse(".global .align 16 .v2 .f32 a, b[3], c;\n.extern .shared .b8 d[];\n");
  EXPECT_EQ(names(m.variables), (std::vector<std::string>{"a", "b", "c", "d"}));
  const uint64_t bytes[] = {8, 24, 8, 0};
  for (int i = 0; i < 4; ++i) {
    const Variable& v = m.variables[i];
    SCOPED_TRACE(v.name);
    EXPECT_EQ(v.bytes, bytes[i]);
    EXPECT_EQ(v.align, i < 3 ? 16 : 1);
    EXPECT_EQ(v.space, i < 3 ? StateSpace::global : StateSpace::shared);
    EXPECT_EQ(v.is_extern, i == 3);
    EXPECT_EQ(v.unsized, i == 3);
    EXPECT_EQ(v.line, i < 3 ? 4 : 5);
  }
}

TEST_F(PtxParserTest, InitialValues) {
  const ParsedModule& m = parse(
      ".global .s32 i[4] = {1, -2, 0x10, 017};\n"
      ".global .f32 f[4] = {0f3F800000, -0f3F800000, 1.5, -1.5};\n"
      ".global .f64 d = -0d3FF0000000000000;\n"
      ".global .b8 open[] = {1, 2, 3};\n"
      ".const .u64 at[2] = {generic(i)+8, f-4};\n");
  EXPECT_EQ(values<int>(m.variables[0]), (std::vector<int>{1, -2, 16, 15}));
  EXPECT_EQ(values<float>(m.variables[1]), (std::vector<float>{1, -1, 1.5, -1.5}));
  EXPECT_EQ(values<double>(m.variables[2]), std::vector<double>{-1});
  EXPECT_EQ(m.variables[3].bytes, 3u);
  EXPECT_FALSE(m.variables[3].unsized);
  const auto& relocations = m.variables[4].relocations;
  ASSERT_EQ(relocations.size(), 2u);
  EXPECT_EQ(relocations[0].symbol, "i");
  EXPECT_EQ(relocations[0].addend, 8);
  EXPECT_TRUE(relocations[0].generic);
  EXPECT_EQ(relocations[1].symbol, "f");
  EXPECT_EQ(relocations[1].offset, 8u);
  EXPECT_EQ(relocations[1].addend, -4);
  EXPECT_FALSE(relocations[1].generic);
}

TEST_F(PtxParserTest, ParametersWithWhatTheyPointTo) {
  const ParsedModule& m =
      parse(".entry k(.param .u64 .ptr .global .align 16 p, .param .align 64 .b8 map[128]) { ret; }\n");
  const ParsedFunction& k = m.functions.at(0);
  EXPECT_TRUE(k.is_entry);
  EXPECT_EQ(names(k.params), (std::vector<std::string>{"p", "map"}));
  EXPECT_EQ(k.params[0].align, 8) << "of the pointer, not of what it points to";
  EXPECT_EQ(k.params[1].align, 64);
  EXPECT_EQ(k.params[1].bytes, 128u);
}

TEST_F(PtxParserTest, AnInstructionInItsScope) {
  const ParsedModule& m = parse(
      ".entry k() {\n .reg .pred %p<2>;\n"
      " { .reg .b32 r;\nloop:\n"
      "  @!%p1 tcgen05.mma.cta_group::1.kind::f16  [r + 16],\n   {r, _}, -1, %tid.x, !%p0|r;\n } }\n");
  const ParsedFunction& k = m.functions.at(0);
  ASSERT_EQ(k.scopes.size(), 2u);
  EXPECT_EQ(k.scopes[1].parent, 0);
  EXPECT_EQ(k.scopes[1].labels.at("loop"), 0);
  EXPECT_EQ(k.scopes[0].registers.size(), 2u);
  const ParsedInstr& in = k.instructions.at(0);
  EXPECT_EQ(in.scope, 1);
  EXPECT_EQ(in.line, 8);
  EXPECT_EQ(in.guard, "%p1");
  EXPECT_TRUE(in.guard_negated);
  EXPECT_EQ(in.opcode, "tcgen05");
  EXPECT_EQ(in.qualifiers, (std::vector<std::string_view>{"mma", "cta_group::1", "kind::f16"}));
  EXPECT_EQ(in.text, "@!%p1 tcgen05.mma.cta_group::1.kind::f16 [r + 16], {r, _}, -1, %tid.x, !%p0|r;");
  using Kind = ParsedOperand::Kind;
  const Kind kinds[] = {Kind::address, Kind::vector, Kind::integer, Kind::name, Kind::pair};
  ASSERT_EQ(in.operands.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(in.operands[i].kind, kinds[i]) << i;
  EXPECT_EQ(in.operands[0].offset, 16);
  EXPECT_EQ(in.operands[1].parts[1].kind, Kind::sink);
  EXPECT_EQ(in.operands[2].bits, ~0ull);
  EXPECT_EQ(in.operands[3].name, "%tid.x");
  EXPECT_TRUE(in.operands[4].parts[0].negated);
}

TEST_F(PtxParserTest, RefusalsNameTheLine) {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {".global .u32 a, b[", "line 4: expected an integer before the end of the text"},
      {".global .u32 a = x y;", "line 4: expected ';' before 'y'"},
      {".global .u32 a[2] = {1, 2, 3};", "line 4: too many initial values for 'a'"},
      {".global .b8 a[268435457];", "line 4: variable 'a' is too large"},
      {".global .b8 a[268435456], b;", "line 4: variables are too large in all"},
      {".global .f32 a = 0f3F8;", "line 4: bad number '0f3F8'"},
      {".section .debug_info {", "line 4: section is never closed"},
      {".entry k()\n{\n mov.u32 a, b", "line 6: expected ',' before the end of the text"},
      {".entry k()\n{\n mov.u32 a,", "line 6: instruction is never closed"},
      {".entry k()\n{ .local .b8 a; .local .b8 a; }", "line 5: 'a' is declared twice"},
      {".entry k()\n{ x: x: }", "line 5: label 'x' is defined twice"},
      {".entry k() {", "line 4: function 'k' is never closed"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    try {
      parse(c.text);
      ADD_FAILURE() << "accepted";
    } catch (const PtxError& error) {
      EXPECT_STREQ(error.what(), c.message);
    }
  }
}

}  // namespace
}  // namespace gemmtune::emulator

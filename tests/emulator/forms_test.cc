// The table of accepted forms: patterns, order of qualifiers, rows.
#include "emulator/forms.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/emulator/form_expansion.h"

namespace gemmtune::emulator {
namespace {

bool accepts(std::string_view form) { return !rows_covered(form).empty(); }

TEST(Forms, OrderIsFreeExceptForTypes) {
  EXPECT_TRUE(
      accepts("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2"));
  EXPECT_TRUE(
      accepts("cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes"));
  EXPECT_EQ(rows_covered("cvt.rn.f16.f32"), rows_covered("cvt.f16.rn.f32"));
  EXPECT_TRUE(accepts("cvt.f32.f16"));
  EXPECT_FALSE(accepts("cvt.f16.f32"));  // the other way round it rounds
}

TEST(Forms, WhatIsNotListedIsRefused) {
  EXPECT_FALSE(accepts("setp.lt.b32"));
  EXPECT_FALSE(accepts("add.sat.u32"));
  EXPECT_FALSE(accepts("min.xorsign.f32"));  // .xorsign.abs go together
  EXPECT_FALSE(accepts("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8"));
  EXPECT_FALSE(accepts("ld.global.v4.b64.b64"));
  EXPECT_FALSE(accepts("frobnicate"));
}

TEST(Forms, RowsByEachChoice) {
  EXPECT_EQ(rows_covered("bfind.shiftamt.u32"),
            (std::vector<std::string>{"bfind.{u32..} with .shiftamt", "bfind.{u32..} with .u32"}));
  EXPECT_EQ(rows_covered("bfind.s64"),
            (std::vector<std::string>{"bfind.{u32..} without .shiftamt", "bfind.{u32..} with .s64"}));
  EXPECT_EQ(rows_covered("lop3.b32"), std::vector<std::string>{"lop3.b32"});
  EXPECT_EQ(rows_covered("shf.l.wrap.b32"), std::vector<std::string>{"shf.l.wrap.b32"});
}

TEST(Forms, EveryConcreteFormIsAcceptedAndEveryRowHasOne) {
  std::vector<std::string> rows = form_rows();
  std::set<std::string> listed(rows.begin(), rows.end()), covered;
  EXPECT_EQ(listed.size(), rows.size());
  for (const ParsedRule& rule : form_rules())
    for (const std::string& form : expand_rule(rule)) {
      std::vector<std::string> some = rows_covered(form);
      EXPECT_FALSE(some.empty()) << form;
      covered.insert(some.begin(), some.end());
    }
  for (const std::string& row : covered) EXPECT_TRUE(listed.contains(row)) << row;
  for (const std::string& row : rows)
    EXPECT_TRUE(covered.contains(row)) << row << " is hidden by an earlier rule";
}

TEST(Forms, Expansion) {
  EXPECT_EQ(forms_of("mul24"),
            (std::vector<std::string>{"mul24.lo.u32", "mul24.lo.s32", "mul24.hi.u32", "mul24.hi.s32"}));
  EXPECT_TRUE(has_qualifier("ld.global.nc.v2.u32", "nc"));
  EXPECT_FALSE(has_qualifier("ld.global.nc.v2.u32", "n"));
}

}  // namespace
}  // namespace gemmtune::emulator

#include "emulator/instruction_descriptor.h"

#include <fmt/format.h>

#include "emulator/diagnosis.h"

namespace gemmtune::emulator {
namespace {

[[noreturn]] void bad(const std::string& message) { throw Fault(Check::instruction_descriptor, message); }

ScalarType operand_type(uint32_t code, MmaKind kind, const char* operand) {
  switch (kind) {
    case MmaKind::f16:
      if (code == 0) return ScalarType::f16;
      if (code == 1) return ScalarType::bf16;
      break;
    case MmaKind::tf32:
      if (code == 2) return ScalarType::tf32;
      break;
    case MmaKind::f8f6f4: {
      static constexpr ScalarType kTypes[] = {ScalarType::e4m3, ScalarType::e5m2, ScalarType::none,
                                              ScalarType::e2m3, ScalarType::e3m2, ScalarType::e2m1};
      // Codes: 0 E4M3, 1 E5M2, 3 E2M3, 4 E3M2, 5 E2M1.
      if (code < 6 && kTypes[code] != ScalarType::none) return kTypes[code];
      break;
    }
    case MmaKind::i8:
      if (code == 0) return ScalarType::u8;
      if (code == 1) return ScalarType::s8;
      break;
  }
  bad(fmt::format("format {} of {} is not legal for this kind", code, operand));
}

}  // namespace

InstructionDescriptor decode_instruction_descriptor(uint32_t bits, MmaKind kind, uint32_t cta_group,
                                                    bool a_in_tmem, std::string* warning) {
  InstructionDescriptor r;
  if (bits & 3) bad("sparsity selector (bits 0-1) must be 0 for a dense multiply");
  if (bits & 4) bad("sparse (bit 2) is set, the instruction is dense");
  r.saturate = bits >> 3 & 1;
  if (r.saturate && kind != MmaKind::i8) bad("saturate (bit 3) is for i8 only");
  if (bits & 0x40) bad("bit 6 must be 0");
  if (bits & 0x800000) bad("bit 23 must be 0");
  if (bits & 0x20000000) bad("bit 29 must be 0");
  if (bits >> 30) bad("bits 30-31 must be 0 outside .ws");
  uint32_t d = bits >> 4 & 3;
  r.a = operand_type(bits >> 7 & 7, kind, "A");
  r.b = operand_type(bits >> 10 & 7, kind, "B");
  if (kind == MmaKind::f16 && r.a != r.b) bad("A and B have different formats");
  switch (d) {
    case 0:
      r.d = ScalarType::f16;
      break;
    case 1:
      r.d = ScalarType::f32;
      break;
    case 2:
      r.d = ScalarType::s32;
      break;
    default:
      bad("D format (bits 4-5) is invalid");
  }
  bool d_ok = kind == MmaKind::i8
                  ? r.d == ScalarType::s32
                  : r.d == ScalarType::f32 ||
                        (r.d == ScalarType::f16 && (kind == MmaKind::f8f6f4 || r.a == ScalarType::f16));
  if (kind == MmaKind::tf32 && r.d != ScalarType::f32) d_ok = false;
  if (!d_ok) bad(fmt::format("D format {} is not legal for this kind", d));
  r.negate_a = bits >> 13 & 1;
  r.negate_b = bits >> 14 & 1;
  if (kind == MmaKind::i8 && (r.negate_a || r.negate_b)) bad("negation is not legal for i8");
  r.a_mn_major = bits >> 15 & 1;
  r.b_mn_major = bits >> 16 & 1;
  if (a_in_tmem && r.a_mn_major) bad("A in tensor memory must be K-major (bit 15)");
  r.n = (bits >> 17 & 0x3f) << 3;
  r.m = (bits >> 24 & 0x1f) << 4;
  r.k = kind == MmaKind::f16 ? 16 : kind == MmaKind::tf32 ? 8 : 32;
  bool m_ok = cta_group == 1 ? r.m == 64 || r.m == 128 : r.m == 128 || r.m == 256;
  if (!m_ok) bad(fmt::format("M = {} is not legal for cta_group::{}", r.m, cta_group));
  uint32_t step = cta_group == 1 ? 8 : 16;
  bool n_ok = r.n >= step && r.n <= 256 && r.n % step == 0;
  if (kind == MmaKind::i8)
    n_ok = cta_group == 1 ? (r.n == 8 || r.n == 24 || (r.n >= 16 && r.n % 16 == 0)) && r.n <= 256
                          : r.n >= 32 && r.n % 32 == 0;
  if (!n_ok) bad(fmt::format("N = {} is not legal for cta_group::{} and M = {}", r.n, cta_group, r.m));
  bool byte_b = kind == MmaKind::f8f6f4 || kind == MmaKind::i8;
  if (r.b_mn_major && byte_b && r.n % (cta_group == 1 ? 16 : 32))
    bad(fmt::format("N = {} is not legal for an 8-bit MN-major B", r.n));
  auto sub_byte = [](ScalarType t) {
    return t == ScalarType::e2m3 || t == ScalarType::e3m2 || t == ScalarType::e2m1;
  };
  if ((r.a_mn_major && sub_byte(r.a)) || (r.b_mn_major && sub_byte(r.b)))
    bad("4- and 6-bit types must be K-major");
  // Sources disagree here (ptx-facts 2.5 footnotes): CUTLASS and DeepGEMM use the stricter step.
  if (cta_group == 1 && r.m == 128 && r.n % 16)
    *warning = fmt::format("N = {} with M = 128: some sources demand N % 16 = 0", r.n);
  if (cta_group == 2 && a_in_tmem && r.n % 32)
    *warning = fmt::format("N = {} with A in tensor memory: some sources demand N % 32 = 0", r.n);
  return r;
}

}  // namespace gemmtune::emulator

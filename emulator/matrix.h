// Matrix operands in shared memory: descriptors, element order, conversion to f32 panels, and the multiply
// itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/scalar_type.h"
#include "emulator/tensor_map.h"

namespace gemmtune::emulator {

/// Fields of the 64-bit shared-memory matrix descriptor, in bytes (ptx-facts 2.1).
struct MatrixDescriptor {
  uint32_t start = 0;
  uint32_t lbo = 0, sbo = 0;
  uint32_t base_offset = 0;
  TensorSwizzle swizzle = TensorSwizzle::none;  ///< none, b32, b64, b128, b128_atom32
};

/// Throws Fault(matrix_descriptor) with the field named.
MatrixDescriptor decode_tcgen05_descriptor(uint64_t bits, const char* operand);
MatrixDescriptor decode_wgmma_descriptor(uint64_t bits, const char* operand);

/// One operand of a multiply: `mn` rows of A (or columns of B) x k elements.
struct MatrixOperand {
  MatrixDescriptor descriptor;
  bool mn_major = false;
  uint32_t mn = 0, k = 0;
  ScalarType type = ScalarType::f16;  ///< element; sub-byte types sit in bytes
  uint32_t first_mn = 0;              ///< units before this row are skipped; results count from it
};

/// Shared offset of the 16-byte unit that holds element (mn, k): both multiples of the unit in the major
/// direction.
uint32_t unit_address(const MatrixOperand& operand, uint32_t mn, uint32_t k);
/// Calls visit(address, mn, k) for every 16-byte unit.
template <class F>
void for_units(const MatrixOperand& operand, F visit) {
  uint32_t per_unit = 16 / static_cast<uint32_t>(size_bytes(operand.type));
  if (operand.mn_major) {
    for (uint32_t k = 0; k < operand.k; ++k)
      for (uint32_t mn = operand.first_mn; mn < operand.first_mn + operand.mn; mn += per_unit)
        visit(unit_address(operand, mn, k), mn, k);
  } else {
    for (uint32_t mn = operand.first_mn; mn < operand.first_mn + operand.mn; ++mn)
      for (uint32_t k = 0; k < operand.k; k += per_unit) visit(unit_address(operand, mn, k), mn, k);
  }
}

/// Elements as f32, [mn][k] or (`k_first`) [k][leading]: `leading` is the distance of rows. Throws Fault out
/// of bounds.
void read_operand(const MatrixOperand& operand, const std::vector<uint8_t>& smem, float* out, bool k_first,
                  uint32_t leading);
/// One element's bits as f32. tf32 keeps 10 mantissa bits (cut, ptx-facts 1.7).
void convert_elements(const uint8_t* raw, uint32_t count, ScalarType type, float* out);
/// Integers of i8 kinds as f32 are exact too; this tells whether the type is one.
bool is_integer_element(ScalarType type);

/// c[i][0..n) (+)= a[i][0..k) x b[0..k)[0..n), f32 with fused multiply-add. c: m row pointers.
void multiply_f32(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                  uint32_t ldb, float* const* c, bool accumulate);

/// Hopper's accumulation (ptx-facts 10.2), to the bit.
struct AccumulationRule {
  int fraction_bits = 25;                               ///< F: terms are cut to multiples of 2^(e - F)
  int result_bits = 24;                                 ///< R + 1 significant bits, toward zero
  ScalarType a = ScalarType::f16, b = ScalarType::f16;  ///< give the exponent of subnormal operands
  bool f16_result = false;                              ///< one rounding to nearest even instead
};
void multiply_exact(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                    uint32_t ldb, float* const* c, bool accumulate, const AccumulationRule& rule);

/// Uses plain f32 where the data make both agree (integers whose sums stay below 2^(result_bits)).
void multiply_hopper(uint32_t m, uint32_t n, uint32_t k, const float* a, uint32_t lda, const float* b,
                     uint32_t ldb, float* const* c, bool accumulate, const AccumulationRule& rule);

}  // namespace gemmtune::emulator

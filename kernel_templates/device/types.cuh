// Fixed-width names and the tensor map's shape. Nothing of CUDA's headers is needed: a rendered variant compiles
// with NVRTC on a machine that has no toolkit, and with nvcc.
#pragma once

#define DEVICE __device__ __forceinline__
#define HOST_DEVICE __host__ __device__

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

/// CUtensorMap: opaque, 128 bytes. 64-byte alignment is what the hardware needs (ptx-facts 3.3).
struct alignas(64) TensorMap {
  u64 opaque[16];
};

enum class Type { f16, bf16, f32 };
HOST_DEVICE constexpr int size_bytes(Type type) { return type == Type::f32 ? 4 : 2; }

HOST_DEVICE constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
HOST_DEVICE constexpr int round_up(int a, int b) { return ceil_div(a, b) * b; }

#include "gpu/launcher.h"

#include <cstring>

namespace gemmtune {
namespace {

CUtensorMapDataType data_type(DType type) {
  switch (type) {
    case DType::f16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
  return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

CUtensorMap encode(const TensorMapSpec& spec, CUdeviceptr address) {
  CUtensorMap map;
  const std::array<cuuint32_t, 5> element_strides = {1, 1, 1, 1, 1};
  std::array<cuuint64_t, 5> dims{}, strides{};
  std::array<cuuint32_t, 5> box{};
  for (size_t i = 0; i < 5; ++i) dims[i] = spec.dims[i], box[i] = spec.box[i];
  for (size_t i = 0; i < 4; ++i) strides[i] = spec.strides_bytes[i];
  check(CudaDriver::get().TensorMapEncodeTiled(
            &map, data_type(spec.type), static_cast<cuuint32_t>(spec.rank), reinterpret_cast<void*>(address),
            dims.data(), strides.data(), box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
            static_cast<CUtensorMapSwizzle>(spec.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return map;
}

using Attributes = std::array<CUlaunchAttribute, 3>;

/// Launch configuration with what the plan says beyond sizes; `attributes` must outlive it.
CUlaunchConfig launch_config(const LaunchPlan& plan, Attributes& attributes, CUstream stream) {
  unsigned count = 0;
  auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    attributes[count].id = id;
    return attributes[count++].value;
  };
  add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim = {plan.cluster.x, plan.cluster.y, plan.cluster.z};
  if (plan.preferred_cluster)
    add(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION).preferredClusterDim = {
        plan.preferred_cluster->x, plan.preferred_cluster->y, plan.preferred_cluster->z};
  if (plan.programmatic)
    add(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = plan.grid.x;
  config.gridDimY = plan.grid.y;
  config.gridDimZ = plan.grid.z;
  config.blockDimX = plan.block.x;
  config.blockDimY = plan.block.y;
  config.blockDimZ = plan.block.z;
  config.sharedMemBytes = static_cast<unsigned>(plan.dynamic_smem_bytes);
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = count;
  return config;
}

}  // namespace

CUdeviceptr OperandAddresses::of(Operand operand) const {
  switch (operand) {
    case Operand::a:
      return a;
    case Operand::b:
      return b;
    case Operand::c:
      return c;
    case Operand::d:
      return d;
    case Operand::workspace:
      return workspace;
  }
  return 0;
}

PreparedLaunch::PreparedLaunch(CUfunction function, const LaunchPlan& plan, const OperandAddresses& operands)
    : function_(function), plan_(plan), slots_(plan.args.size()) {
  for (size_t i = 0; i < plan.args.size(); ++i) {
    auto put = [&](const auto& value) { std::memcpy(slots_[i].bytes.data(), &value, sizeof value); };
    std::visit(
        [&](const auto& arg) {
          using Arg = std::decay_t<decltype(arg)>;
          if constexpr (std::is_same_v<Arg, TensorMapSpec>) {
            put(encode(arg, operands.of(arg.operand)));
          } else if constexpr (std::is_same_v<Arg, PointerArg>) {
            put(operands.of(arg.operand));
          } else {
            put(arg);
          }
        },
        plan.args[i]);
  }
}

void PreparedLaunch::run(CUstream stream) const {
  Attributes attributes;
  CUlaunchConfig config = launch_config(plan_, attributes, stream);
  std::array<void*, 32> arguments{};
  for (size_t i = 0; i < slots_.size(); ++i)
    arguments[i] = const_cast<unsigned char*>(slots_[i].bytes.data());  // the driver only reads
  check(CudaDriver::get().LaunchKernelEx(&config, function_, arguments.data(), nullptr), "cuLaunchKernelEx");
}

void configure(CUfunction function, const LaunchPlan& plan) {
  const CudaDriver& cuda = CudaDriver::get();
  check(cuda.FuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              plan.dynamic_smem_bytes),
        "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)");
}

int max_active_clusters(CUfunction function, const LaunchPlan& plan) {
  Attributes attributes;
  CUlaunchConfig config = launch_config(plan, attributes, nullptr);
  int clusters = 0;
  check(CudaDriver::get().OccupancyMaxActiveClusters(&clusters, function, &config),
        "cuOccupancyMaxActiveClusters");
  return clusters;
}

}  // namespace gemmtune

// The emulator against the GPU: variants of a pairwise covering sample of knobs and problem classes, with
// integers and with normally distributed data, on ragged shapes. Outputs must be equal bit for bit: the
// emulator follows Hopper's accumulation rule, not only its bound.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "emulator/emulated_gemm.h"
#include "gpu/launcher.h"
#include "search/covering.h"
#include "tests/all_cores.h"
#include "tests/gpu/gpu_fixture.h"

namespace gemmtune {
namespace {

constexpr Shape kShape{328, 520, 1096};

struct Row {
  Variant variant;
  CompileResult compiled;
};

class EmulatorIdentity : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (arch_->has_tcgen05) GTEST_SKIP() << "the accumulation rule of tcgen05 is not known";
    ASSERT_NO_FATAL_FAILURE(make_context());
  }

  /// Classes as extra factors: input, output, major-ness, beta.
  std::vector<Row> rows() {
    std::vector<ExtraFactor> extra = {{"in", 2}, {"out", 3}, {"a_major", 2}, {"b_major", 2}, {"beta", 2}};
    auto class_of = [](const std::vector<int>& e) {
      return ProblemClass{e[0] ? DType::f16 : DType::bf16, static_cast<DType>(e[1]),
                          e[2] ? Major::mn : Major::k, e[3] ? Major::mn : Major::k, e[4] == 1};
    };
    std::map<std::vector<int>, Space> spaces;
    auto space_of = [&](const std::vector<int>& e) -> const Space& {
      return spaces.try_emplace(e, *family_, *arch_, class_of(e), kShape).first->second;
    };
    std::vector<Row> result;
    for (const CoveringRow& row : covering_sample(space_of, extra, 2, 20261130).rows)
      result.push_back({variant(row.config, class_of(row.extra)), {}});
    return result;
  }

  std::vector<uint8_t> on_gpu(const Row& row, const EmulatedGemm& gemm, float alpha, float beta) {
    Module module(row.compiled.cubin);
    CUfunction function = module.function(std::string(row.variant.family->entry()).c_str());
    std::map<Operand, DeviceBuffer> buffers;
    for (Operand operand : {Operand::a, Operand::b, Operand::c, Operand::d}) {
      std::vector<uint8_t> bytes = gemm.bytes(operand);
      buffers.emplace(operand, DeviceBuffer(std::max<size_t>(bytes.size(), 16)));
      if (operand != Operand::d && !bytes.empty())
        check(CudaDriver::get().MemcpyHtoD(buffers.at(operand).address(), bytes.data(), bytes.size()),
              "upload");
    }
    OperandAddresses addresses{buffers.at(Operand::a).address(), buffers.at(Operand::b).address(),
                               buffers.at(Operand::c).address(), buffers.at(Operand::d).address(), 0};
    auto plan_for = [&](int clusters) {
      return row.variant.family->plan(row.variant.config, row.variant.cls, *arch_, kShape,
                                      {gpu_.record.sm_count, clusters}, alpha, beta);
    };
    LaunchPlan plan = plan_for(1);
    configure(function, plan);
    plan = plan_for(max_active_clusters(function, plan));
    PreparedLaunch(function, plan, addresses).run(nullptr);
    check(CudaDriver::get().CtxSynchronize(), "cuCtxSynchronize");
    std::vector<uint8_t> output(gemm.bytes(Operand::d).size());
    check(CudaDriver::get().MemcpyDtoH(output.data(), buffers.at(Operand::d).address(), output.size()),
          "download");
    return output;
  }
};

/// What the emulator makes of one row and fill.
struct Emulated {
  std::unique_ptr<EmulatedGemm> gemm;
  emulator::LaunchResult ran;
};

TEST_F(EmulatorIdentity, SameBitsAsTheGpuOnIntegersAndOnNormalData) {
  std::vector<Row> all = rows();
  compile_all(all);
  for (const Row& row : all) ASSERT_TRUE(row.compiled.ok) << row.compiled.log;
  size_t sampled = all.size();
  // Those that spill are never candidates.
  size_t spilled = std::erase_if(all, [](const Row& r) { return r.compiled.evidence.spill_store_bytes > 0; });
  const std::array fills{Fill::rounding, Fill::normal};
  auto alpha = [](const Row& row) { return row.variant.cls.beta ? 0.5f : 1; };
  auto beta = [](const Row& row) { return row.variant.cls.beta ? 2.0f : 0; };
  std::vector<Emulated> emulated(all.size() * fills.size());
  on_all_cores(emulated.size(), [&](size_t i) {
    const Row& row = all[i / fills.size()];
    emulator::Module module(row.compiled.ptx);
    emulated[i].gemm = std::make_unique<EmulatedGemm>(Problem{row.variant.cls, kShape},
                                                      fills[i % fills.size()], alpha(row), beta(row));
    emulated[i].ran = emulated[i].gemm->launch(module, row.variant, gpu_.record.sm_count, {});
  });
  size_t equal = 0;
  for (size_t i = 0; i < emulated.size(); ++i) {
    const Row& row = all[i / fills.size()];
    std::string what = fmt::format("{} {}, {}", to_string(row.variant.cls),
                                   brief_text(row.variant.family->knobs(), row.variant.config),
                                   name(fills[i % fills.size()]));
    EXPECT_TRUE(emulated[i].ran.clean()) << what << ": " << emulated[i].ran.text();
    std::vector<uint8_t> ours = emulated[i].gemm->output(),
                         real = on_gpu(row, *emulated[i].gemm, alpha(row), beta(row));
    size_t different = 0;
    for (size_t k = 0; k < real.size(); ++k) different += real[k] != ours[k];
    EXPECT_EQ(different, 0u) << what << ": bytes that differ, of " << real.size();
    equal += different == 0;
  }
  fmt::print("{} variants, {} left out for spills: {} of {} outputs bit-identical on {} and emulator\n",
             sampled, spilled, equal, emulated.size(), gpu_.record.name);
}

}  // namespace
}  // namespace gemmtune

#include "gpu/gpu_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "gpu/canary_run.h"
#include "gpu/cublaslt.h"
#include "gpu/cuda_driver.h"
#include "gpu/device_info.h"
#include "gpu/embedded.h"
#include "gpu/launcher.h"
#include "gpu/nvml.h"
#include "gpu/nvrtc.h"
#include "gpu/sampler.h"
#include "gpu/workbench.h"
#include "kernel_templates/family.h"
#include "search/proxy_shapes.h"
#include "search/trial_json.h"

namespace gemmtune {
namespace {

using nlohmann::json;
constexpr uint64_t kSeed = 20240229;

/// A step that ended a trial.
struct StepFailure {
  Outcome outcome;
  std::string message;
};

class Worker {
 public:
  Worker(int index, std::string support_cubin) : gpu_(list_gpus().gpus.at(static_cast<size_t>(index))) {
    const CudaDriver& cuda = CudaDriver::get();
    CUdevice device;
    check(cuda.DeviceGet(&device, index), "cuDeviceGet");
    std::vector<unsigned> processes_before = Nvml().compute_processes(gpu_.record.uuid);
    CUcontext context;
    check(cuda.DevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuda.CtxSetCurrent(context), "cuCtxSetCurrent");
    check(cuda.StreamCreate(&stream_, CU_STREAM_DEFAULT), "cuStreamCreate");
    sampler_.emplace(stream_, gpu_.record.uuid, processes_before);
    support_cubin_ = support_cubin.empty() ? compile_support() : std::move(support_cubin);
    support_.emplace(support_cubin_);
  }

  const DeviceRecord& record() const { return gpu_.record; }
  const std::string& support_cubin() const { return support_cubin_; }

  json serve(const json& request) {
    const std::string op = request.at("op");
    if (op == "begin") return begin(request);
    if (op == "prepare") return prepare(request);
    if (op == "validate") return validate(request);
    if (op == "sample") return sample(request);
    if (op == "graph") return graph(request);
    if (op == "library") return library(request);
    if (op == "ping") return json::object();
    if (op == "recheck") return recheck(request);
    if (op == "end") return forget_problem();
    if (op == "canary") return canary();
    throw std::logic_error("unknown request " + op);
  }

 private:
  std::string compile_support() const {
    std::string source;
    for (const char* name : {"kernels/support.cu", "kernels/canary.cu"})
      for (const auto& file : gpu_embedded())
        if (file.name == name) source += file.text;
    CompileResult support =
        Nvrtc().compile({"support", source, fmt::format("sm_{}{}", gpu_.cc_major, gpu_.cc_minor)});
    if (!support.ok) throw CudaError{CUDA_ERROR_UNKNOWN, "support kernels do not compile: " + support.log};
    return support.cubin;
  }

  struct Prepared {
    Variant variant;
    Module module;
    CUfunction function;
    LaunchDevice device;
    DeviceBuffer workspace;  ///< of the problem's shape; its own: kernels rely on what they leave
    Rotation timing;
  };

  /// What the vendor library offers for the problem, from handle `first_handle` on.
  struct Offer {
    std::unique_ptr<LibraryGemm> gemm;
    int first_handle;
    std::vector<Rotation> timing;  ///< of each algorithm
    std::optional<size_t> algorithm(int handle) const {
      bool ours = handle < first_handle || handle - first_handle >= static_cast<int>(timing.size());
      return ours ? std::nullopt : std::optional(static_cast<size_t>(handle - first_handle));
    }
  };

  LaunchPlan plan(const Prepared& p, const Shape& shape) const {
    return p.variant.family->plan(p.variant.config, p.variant.cls, *p.variant.arch, shape, p.device, alpha_,
                                  beta_);
  }

  /// Zero, as a kernel finds it before its first launch.
  DeviceBuffer workspace(const LaunchPlan& plan) const {
    if (plan.workspace_bytes == 0) return {};
    DeviceBuffer buffer(static_cast<size_t>(plan.workspace_bytes));
    check(CudaDriver::get().MemsetD8Async(buffer.address(), 0, buffer.bytes(), stream_), "cuMemsetD8Async");
    return buffer;
  }

  json forget_problem() {
    prepared_.clear();
    offer_.reset();
    checks_.clear();
    timing_.reset();
    if (sampler_) sampler_->new_problem();
    return json::object();
  }

  json begin(const json& request) {
    forget_problem();
    problem_ = {parse_problem_class(request.at("class").get<std::string>()), request.at("shape")};
    alpha_ = request.at("alpha");
    beta_ = request.at("beta");
    require_memory();
    for (Fill fill : kAllFills)
      checks_.push_back(std::make_unique<CheckSet>(*support_, stream_, problem_, alpha_, beta_, fill, kSeed));
    timing_.emplace(*support_, stream_, problem_, gpu_.record.l2_bytes, kSeed);
    check(CudaDriver::get().StreamSynchronize(stream_), "reference kernels");
    return json::object();
  }

  /// Three check sets and the timing sets, in double: sizes may exceed what an integer of bytes holds.
  void require_memory() const {
    double in = size_bytes(problem_.cls.in), out = size_bytes(problem_.cls.out);
    double m = double(problem_.shape.m), n = double(problem_.shape.n), k = double(problem_.shape.k);
    double operands = (m * k + n * k) * in, results = m * n * out * (problem_.cls.beta ? 2 : 1);
    double checks = 3 * (operands + results) + m * n * (2 * out + 8 + out);
    double set = operands + results;
    double needed =
        checks + std::max(2 * set, std::max(268435456.0, 2.0 * double(gpu_.record.l2_bytes)) + set);
    size_t free = 0, total = 0;
    check(CudaDriver::get().MemGetInfo(&free, &total), "cuMemGetInfo");
    if (needed > double(free))
      throw StepFailure{
          Outcome::launch_failed,
          fmt::format("validating and timing {} needs about {:.1f} GiB of device memory, {:.1f} are free",
                      to_string(problem_.shape), needed / (1 << 30), double(free) / (1 << 30))};
  }

  json prepare(const json& request) {
    Prepared p;
    p.variant.family = find_family(request.at("family").get<std::string>());
    p.variant.arch = &find_arch(request.at("arch").get<std::string>());
    p.variant.cls = problem_.cls;
    p.variant.config = parse_config(p.variant.family->knobs(), request.at("config").get<std::string>());
    p.module = Module(from_blob(request.at("cubin")));
    p.function = p.module.function(std::string(p.variant.family->entry()).c_str());
    p.device.sm_count = gpu_.record.sm_count;
    LaunchPlan shape_plan = plan(p, problem_.shape);
    configure(p.function, shape_plan);
    p.device.max_active_clusters = max_active_clusters(p.function, shape_plan);
    if (p.device.max_active_clusters == 0)
      throw StepFailure{Outcome::launch_failed,
                        fmt::format("no cluster of {} CTAs with {} bytes of shared memory fits this device",
                                    shape_plan.cluster.x, shape_plan.dynamic_smem_bytes)};
    shape_plan = plan(p, problem_.shape);
    p.workspace = workspace(shape_plan);
    for (size_t i = 0; i < timing_->count(); ++i) {
      OperandAddresses operands = timing_->addresses(i);
      operands.workspace = p.workspace.address();
      p.timing.sets.push_back(std::make_unique<PreparedLaunch>(p.function, shape_plan, operands));
    }
    prepared_.insert_or_assign(request.at("handle").get<int>(), std::move(p));
    return json::object();
  }

  json library(const json& request) {
    offer_.reset();
    if (!cublaslt_) cublaslt_.emplace();
    if (!*cublaslt_) throw StepFailure{Outcome::launch_failed, cublaslt_->problem()};
    offer_ = Offer{
        std::make_unique<LibraryGemm>(*cublaslt_, problem_, alpha_, beta_, request.at("at_most").get<int>()),
        request.at("first_handle").get<int>(),
        {}};
    json names = json::array();
    for (size_t i = 0; i < offer_->gemm->algorithms().size(); ++i) {
      const LibraryAlgorithm& algorithm = offer_->gemm->algorithms()[i];
      names.push_back({{"name", algorithm.name}, {"workspace_bytes", algorithm.workspace_bytes}});
      Rotation rotation;
      for (size_t set = 0; set < timing_->count(); ++set)
        rotation.sets.push_back(offer_->gemm->launch(i, timing_->addresses(set)));
      offer_->timing.push_back(std::move(rotation));
    }
    return {{"version", "cuBLASLt " + cublaslt_->version()}, {"algorithms", names}};
  }

  /// All fills at the problem's shape, as for ours; no proxy shapes: the library would choose anew for each.
  json validate_library(size_t algorithm) {
    Validation validation{ValidatedBy::gpu, {}};
    json reply = json::object();
    for (const auto& set : checks_) {
      validation.cases.push_back(set->judge(*offer_->gemm->launch(algorithm, set->addresses())));
      const ValidationCase& got = validation.cases.back();
      if (got.passed()) continue;
      reply["outcome"] =
          name(got.mismatches > 0 || !got.guards_intact ? Outcome::wrong_result : Outcome::unstable);
      reply["message"] =
          fmt::format("{} fill: {} of {} elements wrong{}{}", name(got.fill), got.mismatches, got.elements,
                      got.first_mismatch.empty() ? "" : ", first ", got.first_mismatch);
      break;
    }
    reply["validation"] = validation;
    return reply;
  }

  json validate(const json& request) {
    if (std::optional<size_t> algorithm = library_algorithm(request)) return validate_library(*algorithm);
    Prepared& p = prepared_.at(request.at("handle").get<int>());
    Validation validation{ValidatedBy::gpu, {}};
    auto finish = [&](std::string message) {
      json reply = {{"validation", validation}};
      if (message.empty()) return reply;
      const ValidationCase& last = validation.cases.back();
      reply["outcome"] =
          name(!last.repeatable && last.mismatches == 0 ? Outcome::unstable : Outcome::wrong_result);
      reply["message"] = message;
      return reply;
    };
    // One workspace for all fills of a shape, as in timing: what a launch finds there is what another, with
    // other operands, has left.
    auto judge = [&](CheckSet& set, const Shape& shape, const LaunchPlan& shape_plan,
                     const DeviceBuffer& partials) -> std::string {
      OperandAddresses operands = set.addresses();
      operands.workspace = partials.address();
      PreparedLaunch launch(p.function, shape_plan, operands);
      validation.cases.push_back(set.judge(launch));
      const ValidationCase& got = validation.cases.back();
      if (got.passed()) return "";
      std::string what = got.mismatches > 0 ? fmt::format("{} of {} elements wrong, first {}", got.mismatches,
                                                          got.elements, got.first_mismatch)
                         : !got.guards_intact ? std::string("wrote outside its buffers")
                                              : std::string("launches gave different bits");
      return fmt::format("{} fill at {}: {}", name(got.fill), to_string(shape), what);
    };
    if (request.at("proxies").get<bool>()) {
      TileShape tile = p.variant.family->tile(p.variant.config, p.variant.cls);
      for (const Shape& shape : proxy_shapes(tile, problem_.cls, gpu_.record.sm_count)) {
        LaunchPlan shape_plan = plan(p, shape);
        DeviceBuffer partials = workspace(shape_plan);
        for (Fill fill : kAllFills) {
          CheckSet set(*support_, stream_, {problem_.cls, shape}, alpha_, beta_, fill, kSeed + 7);
          if (std::string message = judge(set, shape, shape_plan, partials); !message.empty())
            return finish(message);
        }
      }
    }
    LaunchPlan shape_plan = plan(p, problem_.shape);
    for (const auto& set : checks_)
      if (std::string message = judge(*set, problem_.shape, shape_plan, p.workspace); !message.empty())
        return finish(message);
    return finish("");
  }

  /// After timing: thousands of launches later the kernel, with its workspace, must still be right.
  json recheck(const json& request) {
    auto found = prepared_.find(request.at("handle").get<int>());
    if (found == prepared_.end()) return json::object();  // not a variant
    Prepared& p = found->second;
    OperandAddresses operands = checks_.front()->addresses();
    operands.workspace = p.workspace.address();
    std::string wrong =
        checks_.front()->recheck(PreparedLaunch(p.function, plan(p, problem_.shape), operands));
    if (!wrong.empty())
      throw StepFailure{Outcome::unstable,
                        fmt::format("right when validated, wrong after timing: {}", wrong)};
    return json::object();
  }

  std::optional<size_t> library_algorithm(const json& request) const {
    return offer_ ? offer_->algorithm(request.at("handle").get<int>()) : std::nullopt;
  }

  Rotation& rotation(const json& request) {
    std::optional<size_t> algorithm = library_algorithm(request);
    return algorithm ? offer_->timing[*algorithm] : prepared_.at(request.at("handle").get<int>()).timing;
  }

  json canary() {
    CanaryReading reading = run_canary(*support_, stream_);
    return {{"wrong", reading.wrong}, {"tflops", reading.tflops}};
  }

  json sample(const json& request) {
    Rotation& candidate = rotation(request);
    bool warm = request.at("warm").get<bool>();
    Sample sample = request.at("regime") == name(Regime::burst) ? sampler_->burst(candidate, warm)
                                                                : sampler_->sustained(candidate, warm);
    return {{"sample", sample}};
  }

  json graph(const json& request) {
    GraphResult got = sampler_->graph_pair(rotation(request), request.at("warm").get<bool>());
    return {{"plain_us", got.plain_us}, {"graph_us", got.graph_us}};
  }

  GpuInfo gpu_;
  CUstream stream_ = nullptr;
  std::optional<Sampler> sampler_;
  std::string support_cubin_;
  std::optional<SupportKernels> support_;
  std::optional<CublasLt> cublaslt_;
  Problem problem_;
  float alpha_ = 1, beta_ = 0;
  std::vector<std::unique_ptr<CheckSet>> checks_;
  std::optional<TimingSets> timing_;
  std::map<int, Prepared> prepared_;
  std::optional<Offer> offer_;
};

/// Errors after which the context is lost: everything that follows would fail too.
bool sticky(CUresult code) {
  switch (code) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return false;
    default:
      return true;
  }
}

}  // namespace

int run_gpu_worker(Channel channel, int index) {
  std::optional<Worker> worker;
  json hello;
  if (!channel.receive(hello)) return 0;
  try {
    worker.emplace(index, from_blob(hello.at("support")));
  } catch (const CudaError& error) {
    channel.send({{"error", error.text}});
    return 1;
  } catch (const std::exception& error) {
    channel.send({{"error", error.what()}});
    return 1;
  }
  channel.send({{"device", worker->record()}, {"support", to_blob(worker->support_cubin())}});
  json request;
  while (channel.receive(request)) {
    json reply;
    bool lost = false;
    try {
      reply = worker->serve(request);
    } catch (const StepFailure& failure) {
      reply = {{"outcome", name(failure.outcome)}, {"message", failure.message}};
    } catch (const CudaError& error) {
      lost = sticky(error.code);
      reply = {{"outcome", name(lost ? Outcome::crashed : Outcome::launch_failed)}, {"message", error.text}};
    }
    if (!reply.contains("outcome")) reply["outcome"] = name(Outcome::ok);
    reply["lost"] = lost;
    if (!channel.send(reply)) break;
    // A poisoned context serves nobody; leaving without teardown is the fastest way to be rid of it.
    if (lost) ::_exit(0);
  }
  return 0;
}

}  // namespace gemmtune

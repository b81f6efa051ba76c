#include "gpu/gpu_executor.h"

#include <fmt/format.h>

#include <thread>

#include "gemm/error.h"
#include "search/trial_json.h"

namespace gemmtune {

using nlohmann::json;

namespace {

// What the protocol takes beside the launches: a problem's first burst pre-heats, at most about a second; a
// sustained sample takes 1.4 s.
constexpr std::chrono::milliseconds kBurstPatience{1500}, kSustainedPatience{3000};

/// A worker whose memory a bug has overwritten may say anything.
bool is_answer(const json& reply) {
  return reply.is_object() && reply.contains("outcome") && reply.at("outcome").is_string() &&
         parse_outcome(reply.at("outcome").get<std::string>()) && reply.contains("lost") &&
         reply.at("lost").is_boolean();
}

}  // namespace

GpuExecutor::GpuExecutor(int index, std::unique_ptr<GpuLock> lock)
    : GpuExecutor(index, Deadlines(), CanaryRule(), std::move(lock)) {}

GpuExecutor::GpuExecutor(int index, Deadlines deadlines, CanaryRule rule, std::unique_ptr<GpuLock> lock)
    : index_(index), deadlines_(deadlines), rule_(rule), lock_(std::move(lock)) {
  start();
}

std::optional<std::string> GpuExecutor::reserve() {
  return lock_ == nullptr ? std::nullopt : lock_->try_acquire();
}

void GpuExecutor::release() noexcept {
  try {
    // Memory that lies idle here is missing to the next one.
    json reply;
    if (problem_in_worker_) call({{"op", "end"}}, deadlines_.prepare, reply);
  } catch (const std::exception&) {
    // The next step will say so.
  }
  problem_in_worker_ = false;
  if (lock_ != nullptr) lock_->release();
}

void GpuExecutor::start() {
  problem_in_worker_ = false;
  for (auto& [handle, loaded] : loaded_) loaded.in_worker = false;
  if (library_) library_->in_worker = false;
  worker_ = std::make_unique<WorkerProcess>("gpu", std::to_string(index_), lock_ ? lock_->fd() : -1);
  json hello;
  Channel::Received received = exchange({{"support", to_blob(support_cubin_)}}, deadlines_.start, hello);
  if (received == Channel::Received::message && hello.contains("device")) {
    device_ = hello.at("device");
    support_cubin_ = from_blob(hello.at("support"));
    return;
  }
  std::string why = received == Channel::Received::timed_out ? "it does not answer"
                    : received == Channel::Received::closed  ? "its worker process died at start"
                                                             : hello.value("error", "unknown error");
  worker_.reset();
  throw EnvironmentError(fmt::format("GPU {} cannot be used: {}", index_, why));
}

Channel::Received GpuExecutor::exchange(const json& request, std::chrono::milliseconds deadline,
                                        json& reply) {
  Channel::Received sent = worker_->channel().send(request, deadline);
  // One that has died may have left an answer.
  return sent == Channel::Received::timed_out ? sent : worker_->channel().receive(reply, deadline);
}

std::string GpuExecutor::kill_worker() {
  std::string end;
  try {
    end = worker_->kill();
  } catch (const EnvironmentError& error) {
    end = beyond_help_ = error.what();  // for the next step; this one's outcome is to be recorded
  }
  if (beyond_help_.empty()) worker_.reset();
  problem_in_worker_ = false;
  return end;
}

StepResult GpuExecutor::call(const json& request, std::chrono::milliseconds deadline, json& reply) {
  ensure_worker();
  Channel::Received received = exchange(request, deadline, reply);
  std::string op = request.at("op");
  StepResult result;
  if (received == Channel::Received::message && is_answer(reply)) {
    result = {parse_outcome(reply.at("outcome").get<std::string>()).value(), reply.value("message", "")};
    if (!reply.at("lost").get<bool>()) return result;
    kill_worker();
  } else if (std::string end = kill_worker(); received == Channel::Received::timed_out) {
    result = {Outcome::timed_out, fmt::format("{} did not finish within {} s; the worker was killed", op,
                                              double(deadline.count()) / 1000)};
  } else {
    result = {Outcome::crashed, fmt::format("{}: the worker died ({})", op, end)};
  }
  last_fault_ = fmt::format("{} ({})", op, result.message);
  return result;
}

CanaryReading GpuExecutor::read_canary() {
  if (worker_ == nullptr) start();
  json reply;
  CanaryReading reading;
  if (exchange({{"op", "canary"}}, deadlines_.canary, reply) != Channel::Received::message ||
      !is_answer(reply)) {
    reading.wrong = "its worker hung or died";
  } else if (reply.at("outcome") != name(Outcome::ok)) {
    reading.wrong = reply.value("message", "");
  } else {
    reading.wrong = reply.at("wrong");
    reading.tflops = reply.at("tflops");
    return reading;
  }
  kill_worker();
  if (!beyond_help_.empty()) throw EnvironmentError(beyond_help_);
  return reading;
}

void GpuExecutor::ensure_worker() {
  if (!beyond_help_.empty()) throw EnvironmentError(beyond_help_);
  if (worker_ == nullptr) start();
  if (!readings_.empty() && last_fault_.empty()) return;
  std::string why;
  for (int attempt = 0; attempt < rule_.attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(rule_.pause);
    CanaryReading reading = read_canary();
    // The first one has nothing to be compared with but its reference.
    why = sickness(reading, readings_.empty() ? 0 : readings_.front().tflops, rule_);
    if (!why.empty()) continue;
    readings_.push_back(reading);
    last_fault_.clear();
    return;
  }
  throw EnvironmentError(fmt::format("GPU {} ({}) is sick{}: {}; nothing more is measured", index_,
                                     device_.uuid, last_fault_.empty() ? "" : " since " + last_fault_, why));
}

std::chrono::milliseconds GpuExecutor::slow_launches(int count) const {
  constexpr double kSlowTflops = 50;  // a tenth of what the oldest device here reaches
  return std::chrono::milliseconds(static_cast<int64_t>(count * flop(problem_.shape) / kSlowTflops / 1e9));
}

StepResult GpuExecutor::send_begin() {
  json reply;
  StepResult result = call({{"op", "begin"},
                            {"class", to_string(problem_.cls)},
                            {"shape", problem_.shape},
                            {"alpha", alpha_},
                            {"beta", beta_}},
                           deadlines_.begin, reply);
  problem_in_worker_ = result.outcome == Outcome::ok;
  return result;
}

StepResult GpuExecutor::begin_problem(const Problem& problem, float alpha, float beta) {
  problem_ = problem;
  alpha_ = alpha;
  beta_ = beta;
  loaded_.clear();
  library_.reset();
  return send_begin();
}

StepResult GpuExecutor::send_prepare(int handle) {
  Loaded& loaded = loaded_.at(handle);
  const Variant& v = loaded.variant;
  json reply;
  StepResult result = call({{"op", "prepare"},
                            {"handle", handle},
                            {"family", v.family->name()},
                            {"arch", v.arch->name},
                            {"config", to_text(v.family->knobs(), v.config)},
                            {"cubin", to_blob(loaded.cubin)}},
                           deadlines_.prepare, reply);
  loaded.in_worker = result.outcome == Outcome::ok;
  return result;
}

StepResult GpuExecutor::ensure(int handle) {
  if (!problem_in_worker_) {
    StepResult begun = send_begin();
    if (begun.outcome != Outcome::ok)
      throw EnvironmentError(fmt::format("the GPU does not recover: {}", begun.message));
  }
  if (is_library(handle)) {
    json reply;
    return library_->in_worker ? StepResult() : send_library(reply);
  }
  return loaded_.at(handle).in_worker ? StepResult() : send_prepare(handle);
}

StepResult GpuExecutor::send_library(json& reply) {
  StepResult result =
      call({{"op", "library"}, {"first_handle", library_->first_handle}, {"at_most", library_->at_most}},
           deadlines_.begin, reply);
  library_->in_worker = result.outcome == Outcome::ok;
  return result;
}

LibraryResult GpuExecutor::prepare_library(int first_handle, int at_most) {
  library_ = Library{first_handle, at_most};
  json reply;
  LibraryResult result{send_library(reply), "", {}};
  if (result.outcome != Outcome::ok) return result;
  result.version = reply.at("version");
  for (const json& algorithm : reply.at("algorithms"))
    result.algorithms.push_back({algorithm.at("name"), algorithm.at("workspace_bytes")});
  return result;
}

std::chrono::duration<double, std::micro> GpuExecutor::round_trip() {
  json reply;
  auto start = std::chrono::steady_clock::now();
  StepResult result = call({{"op", "ping"}}, deadlines_.prepare, reply);
  if (result.outcome != Outcome::ok) throw EnvironmentError(result.message);
  return std::chrono::steady_clock::now() - start;
}

StepResult GpuExecutor::prepare(int handle, const Variant& variant, const CompiledKernel& kernel) {
  loaded_[handle] = {variant, kernel.cubin, false};
  return ensure(handle);
}

ValidationResult GpuExecutor::validate(int handle) {
  if (StepResult ready = ensure(handle); ready.outcome != Outcome::ok) return {ready, {}};
  if (is_library(handle)) {
    json reply;
    StepResult step =
        call({{"op", "validate"}, {"handle", handle}}, deadlines_.validate + slow_launches(8), reply);
    ValidationResult result{step, {ValidatedBy::gpu, {}}};
    if (reply.contains("validation")) result.validation = reply.at("validation");
    return result;
  }
  const Variant& v = loaded_.at(handle).variant;
  std::string identity = fmt::format("{} {} {} {} {}", v.family->name(), to_string(v.cls),
                                     to_text(v.family->knobs(), v.config), alpha_, beta_);
  auto known = proxies_.find(identity);
  json reply;
  StepResult step = call({{"op", "validate"}, {"handle", handle}, {"proxies", known == proxies_.end()}},
                         deadlines_.validate + slow_launches(8), reply);
  ValidationResult result{step, {ValidatedBy::gpu, {}}};
  if (known != proxies_.end()) result.validation.cases = known->second;
  if (!reply.contains("validation")) return result;
  Validation got = reply.at("validation");
  if (known == proxies_.end() && step.outcome == Outcome::ok) {
    std::vector<ValidationCase>& proxies = proxies_[identity];
    for (const ValidationCase& c : got.cases)
      if (c.shape != problem_.shape) proxies.push_back(c);
  }
  result.validation.cases.insert(result.validation.cases.end(), got.cases.begin(), got.cases.end());
  return result;
}

SampleResult GpuExecutor::sample(int handle, Regime regime, bool warm_l2) {
  if (StepResult ready = ensure(handle); ready.outcome != Outcome::ok) return {ready, {}};
  std::chrono::milliseconds protocol = regime == Regime::burst ? kBurstPatience : kSustainedPatience;
  json reply;
  SampleResult result{
      call({{"op", "sample"}, {"handle", handle}, {"regime", name(regime)}, {"warm", warm_l2}},
           deadlines_.sample + protocol + slow_launches(16), reply),
      {}};
  if (result.outcome != Outcome::ok) return result;
  if (reply.contains("sample")) result.sample = reply.at("sample");
  if (auto loaded = loaded_.find(handle);
      loaded != loaded_.end() && loaded->second.variant.ablation != Ablation::none)
    return result;  // wrong on purpose
  // No time counts before the kernel was right again behind it.
  static_cast<StepResult&>(result) =
      call({{"op", "recheck"}, {"handle", handle}}, deadlines_.sample + slow_launches(2), reply);
  return result;
}

GraphResult GpuExecutor::sample_graph(int handle, bool warm_l2) {
  if (StepResult ready = ensure(handle); ready.outcome != Outcome::ok) return {ready, 0, 0};
  json reply;
  GraphResult result{call({{"op", "graph"}, {"handle", handle}, {"warm", warm_l2}},
                          deadlines_.sample + kBurstPatience + slow_launches(16), reply),
                     0, 0};
  if (result.outcome == Outcome::ok) {
    result.plain_us = reply.at("plain_us");
    result.graph_us = reply.at("graph_us");
  }
  return result;
}

}  // namespace gemmtune

// gemmtune emulate
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "emulator/emulated_gemm.h"
#include "emulator/launch_run.h"
#include "emulator/trace.h"
#include "gemm/error.h"
#include "gemm/suggest.h"
#include "gemm/text_file.h"
#include "gpu/compile_pool.h"
#include "kernel_templates/render.h"
#include "tool/command.h"
#include "tool/options.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

using emulator::LaunchConfig;
using emulator::LaunchResult;
using emulator::SchedulePolicy;

struct EmulateArguments {
  CommonOptions common;
  std::string ptx, launch, fill = "rounding", schedule = "eager";
  std::vector<std::string> trace;
  int64_t seed = 1, instruction_limit = 0;
  int sms = 0, threads = 0;
};

std::vector<emulator::Schedule> schedules(const EmulateArguments& a) {
  constexpr SchedulePolicy all[] = {SchedulePolicy::eager, SchedulePolicy::lazy, SchedulePolicy::random};
  std::vector<emulator::Schedule> chosen;
  std::vector<std::string> names = {"all"};
  for (SchedulePolicy policy : all) {
    names.emplace_back(name(policy));
    if (a.schedule == "all" || a.schedule == names.back())
      chosen.push_back({policy, static_cast<uint64_t>(a.seed)});
  }
  if (chosen.empty())
    throw UsageError(fmt::format("--schedule '{}'{}: eager, lazy, random or all", a.schedule,
                                 did_you_mean(a.schedule, names)));
  return chosen;
}

std::vector<Fill> fills(const std::string& text) {
  std::vector<Fill> chosen;
  std::vector<std::string> names = {"all"};
  for (Fill fill : kAllFills) {
    names.emplace_back(name(fill));
    if (text == "all" || text == names.back()) chosen.push_back(fill);
  }
  if (chosen.empty())
    throw UsageError(
        fmt::format("--fill '{}'{}: sharp, rounding, normal or all", text, did_you_mean(text, names)));
  return chosen;
}

/// The rows of one emulation, and what the process ends with.
class Report {
 public:
  explicit Report(const EmulateArguments& a)
      : arguments_(a),
        table_({{"fill", "fill", true},
                {"schedule", "schedule", true},
                {"outcome", "outcome", true},
                {"elements", "elements"},
                {"mismatches", "wrong"},
                {"max_abs_error", "max error"},
                {"warp_instructions", "warp instructions"},
                {"findings", "findings"},
                {"seconds", "s"}}) {}

  /// The first launch is traced, where a trace is asked for.
  LaunchConfig config(const emulator::Schedule& schedule) {
    LaunchConfig config;
    config.schedule = schedule;
    config.host_threads = arguments_.threads;
    config.instruction_limit = static_cast<uint64_t>(arguments_.instruction_limit);
    if (!arguments_.trace.empty() && table_.empty()) config.trace = trace_.recorder();
    start_ = std::chrono::steady_clock::now();
    return config;
  }

  void add(std::string_view fill, const emulator::Schedule& schedule, const LaunchResult& result,
           int64_t elements, int64_t mismatches, double max_abs_error, const std::string& first_mismatch,
           bool same_as_first) {
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::string outcome = !result.completed ? "did not finish"
                          : mismatches > 0  ? "wrong"
                          : !same_as_first  ? "differs from the first schedule"
                          : !result.clean() ? "findings"
                          : elements > 0    ? "right"
                                            : "ran";
    all_good_ = all_good_ && (outcome == "right" || outcome == "ran");
    table_.add(
        {fill, name(schedule.policy), outcome, elements > 0 ? Cell(elements) : Cell(),
         elements > 0 ? Cell(mismatches) : Cell(), elements > 0 ? Cell::real(max_abs_error, 3) : Cell(),
         static_cast<int64_t>(result.warp_instructions), result.diagnoses.size(), Cell::real(seconds, 2)});
    if (!result.printed.empty()) tell("{}", result.printed);
    for (const emulator::Diagnosis& d : result.diagnoses)
      tell("{}, {}: {}\n", fill.empty() ? "launch" : fill, name(schedule.policy), to_string(d));
    if (!first_mismatch.empty())
      tell("{}, {}: {}\n", fill.empty() ? "launch" : fill, name(schedule.policy), first_mismatch);
  }

  int finish(Format format) {
    for (const std::string& path : arguments_.trace) {
      if (path == "-") {
        fmt::print("{}", trace_.timeline());
      } else {
        write_whole_file(path, path.ends_with(".json") ? trace_.chrome_json() : trace_.timeline());
      }
    }
    fmt::print("{}", table_.render(format));
    return all_good_ ? kDone : kNoWinner;
  }

 private:
  const EmulateArguments& arguments_;
  Table table_;
  emulator::Trace trace_;
  std::chrono::steady_clock::time_point start_;
  bool all_good_ = true;
};

int run_file(const EmulateArguments& a, Format format) {
  auto load = [&] {
    try {
      return emulator::Module(read_text_file(a.ptx, "PTX"));
    } catch (const emulator::PtxError& error) {
      throw UsageError(fmt::format("{}: {}", a.ptx, error.what()));
    }
  };
  emulator::Module module = load();
  emulator::LaunchFile file = emulator::parse_launch_file(read_text_file(a.launch, "launch file"), a.launch);
  if (a.sms > 0) file.sm_count = a.sms;
  emulator::LaunchRun run(file, module);
  Report report(a);
  std::vector<std::vector<uint8_t>> first;
  for (const emulator::Schedule& schedule : schedules(a)) {
    LaunchResult result = run.run(report.config(schedule));
    int64_t elements = 0, mismatches = 0;
    double max_abs_error = 0;
    std::string first_mismatch;
    for (const emulator::BufferCheck& check : run.compare()) {
      elements += check.elements;
      mismatches += check.mismatches;
      max_abs_error = std::max(max_abs_error, check.max_abs_error);
      if (first_mismatch.empty() && check.mismatches > 0)
        first_mismatch = fmt::format("buffer {}{}", check.name, check.first_mismatch);
    }
    std::vector<std::vector<uint8_t>> memory;
    for (const emulator::BufferSpec& buffer : file.buffers) memory.push_back(run.bytes(buffer));
    if (first.empty()) first = memory;
    report.add("", schedule, result, elements, mismatches, max_abs_error, first_mismatch, memory == first);
  }
  for (size_t i = 0; i < file.buffers.size(); ++i)
    if (!file.buffers[i].dump.empty() && !first.empty())
      write_whole_file(file.buffers[i].dump,
                       {reinterpret_cast<const char*>(first[i].data()), first[i].size()});
  return report.finish(format);
}

/// The family's default configuration with what --set names.
Config chosen_config(const CommonOptions& common, const KernelFamily& family, const ArchSpec& arch,
                     const ProblemClass& cls, const Shape& shape) {
  Config config = family.default_config();
  Restrictions set = restrictions(common, family);
  for (size_t i = 0; i < family.knobs().size(); ++i) {
    auto named = set.find(family.knobs()[i].name);
    if (named == set.end()) continue;
    if (named->second.size() != 1)
      throw UsageError(fmt::format("--set {}: one value, emulate runs one variant", named->first));
    config.values[i] = named->second.front();
  }
  std::vector<std::string> reasons = Space(family, arch, cls, shape).violations(config);
  if (!reasons.empty()) throw UsageError(fmt::format("not a legal configuration: {}", reasons.front()));
  return config;
}

int run_variant(const EmulateArguments& a, Format format) {
  CommonOptions common = a.common;
  common.device = "none";
  const ArchSpec& arch = *target(common).arch;
  const KernelFamily& family = family_for(arch);
  ProblemClass cls = problem_class(a.common);
  std::vector<ListedShape> shapes = listed_shapes(a.common, true);
  if (shapes.size() != 1) throw UsageError("emulate runs one shape: give one --shape MxNxK");
  Shape shape = shapes[0].shape;
  Variant variant{&family, &arch, cls, chosen_config(a.common, family, arch, cls, shape)};
  std::vector<Fill> chosen_fills = fills(a.fill);
  std::vector<emulator::Schedule> chosen_schedules = schedules(a);

  CompilePool compiler(1);
  std::string source = render(variant);
  std::string key = compile_key(source, std::string(arch.name), compiler.toolchain());
  compiler.submit({key, source, std::string(arch.name)});
  CompileResult compiled = compiler.take(key);
  if (!compiled.ok) throw EnvironmentError(fmt::format("the variant does not compile: {}", compiled.log));
  emulator::Module module(compiled.ptx);
  int sms = a.sms > 0 ? a.sms : find_device_spec(arch.reference_device)->sm_count;
  Report report(a);
  for (Fill fill : chosen_fills) {
    EmulatedGemm gemm({cls, shape}, fill, static_cast<float>(a.common.alpha),
                      static_cast<float>(a.common.beta));
    std::vector<uint8_t> first;
    for (const emulator::Schedule& schedule : chosen_schedules) {
      LaunchResult result = gemm.launch(module, variant, sms, report.config(schedule));
      std::vector<uint8_t> output = gemm.output();
      ValidationCase checked = gemm.compare(output);
      if (first.empty()) first = output;
      report.add(name(fill), schedule, result, checked.elements, checked.mismatches, checked.max_abs_error,
                 checked.first_mismatch, output == first);
    }
  }
  return report.finish(format);
}

int run(const EmulateArguments& a) {
  Format format = parse_format(a.common.format);
  if (a.seed < 0) throw UsageError("--seed: a number from 0");
  if (a.sms < 0 || a.sms > 1024) throw UsageError("--sms: a number from 1 to 1024");
  if (a.threads < 0 || a.threads > 1024) throw UsageError("--threads: a number from 1 to 1024");
  if (a.instruction_limit < 0) throw UsageError("--instruction-limit: a number from 0");
  if (a.ptx.empty() != a.launch.empty())
    throw UsageError(a.ptx.empty() ? "--launch needs a PTX file: gemmtune emulate kernel.ptx --launch FILE"
                                   : "a PTX file needs --launch FILE, which says how to launch it");
  if (a.ptx.empty()) return run_variant(a, format);
  if (!a.common.shapes.empty() || !a.common.shapes_file.empty() || !a.common.set.empty())
    throw UsageError("a PTX file has its own shape: --shape, --shapes and --set belong to our variants");
  return run_file(a, format);
}

}  // namespace

void declare_emulate(CLI::App& app, int& status) {
  auto a = std::make_shared<EmulateArguments>();
  app.add_option("ptx", a->ptx, "a PTX file; without one: a variant of ours, at --shape")->type_name("FILE");
  app.add_option("--launch", a->launch, "how to launch the PTX file: JSON (docs/commands.md)")
      ->type_name("FILE");
  add_shape_options(app, a->common);
  add_arch_option(app, a->common);
  add_set_option(app, a->common);
  add_type_options(app, a->common);
  add_scaling_options(app, a->common);
  app.add_option("--fill", a->fill, "operands: sharp, rounding, normal, all (default rounding)")
      ->type_name("NAME");
  app.add_option("--schedule", a->schedule,
                 "asynchronous work ends: eager, lazy, random, all (default eager)")
      ->type_name("NAME");
  app.add_option("--seed", a->seed, "of the random schedule (default 1)")->type_name("N");
  app.add_option("--trace", a->trace, "timeline of the first launch: FILE.json for a viewer, FILE to read, -")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--sms", a->sms, "emulated SMs (default: those of the architecture's GPU)")->type_name("N");
  app.add_option("--threads", a->threads, "host threads (default: all cores)")->type_name("N");
  app.add_option("--instruction-limit", a->instruction_limit,
                 "stop a cluster after so many warp instructions (default: none)")
      ->type_name("N");
  add_format_option(app, a->common);
  app.callback([a, &status] { status = run(*a); });
}

}  // namespace gemmtune

#include "tool/options.h"

#include <fmt/format.h>

#include <CLI/Option.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <thread>

#include "gemm/error.h"
#include "gemm/suggest.h"

namespace gemmtune {

void add_shape_options(CLI::App& app, CommonOptions& o) {
  app.add_option("--shape", o.shapes, "problem size MxNxK, repeatable")
      ->type_name("MxNxK")
      ->allow_extra_args(false);
  app.add_option("--shapes", o.shapes_file, "CSV with columns m,n,k and optional name,weight")
      ->type_name("FILE");
}

void add_type_options(CLI::App& app, CommonOptions& o) {
  app.add_option("--dtype", o.dtype, "type of A and B: f16, bf16 (default bf16)")->type_name("TYPE");
  app.add_option("--out-dtype", o.out_dtype, "type of C: f16, bf16, f32 (default as --dtype)")
      ->type_name("TYPE");
  app.add_option("--a-major", o.a_major, "contiguous dimension of A: k, m (default k)")->type_name("DIM");
  app.add_option("--b-major", o.b_major, "contiguous dimension of B: k, n (default k)")->type_name("DIM");
}

void add_scaling_options(CLI::App& app, CommonOptions& o) {
  app.add_option("--alpha", o.alpha, "factor of A x B (default 1)")->type_name("X");
  app.add_option("--beta", o.beta, "factor of C; not 0 is a problem class of its own (default 0)")
      ->type_name("X");
}

void add_arch_option(CLI::App& app, CommonOptions& o) {
  app.add_option("--arch", o.arch, "sm_100a, sm_103a, sm_90a (default: the GPU's, else sm_100a)")
      ->type_name("ARCH");
}

void add_device_option(CLI::App& app, CommonOptions& o) {
  app.add_option("--device", o.device, "auto, cuda:N, emulator, none (default auto: a GPU, else emulator)")
      ->type_name("DEV");
}

void add_set_option(CLI::App& app, CommonOptions& o) {
  app.add_option("--set", o.set, "restrict a knob: stages=4,6 or swizzle=128B; repeatable")
      ->type_name("KNOB=V,...")
      ->allow_extra_args(false);
}

void add_db_option(CLI::App& app, CommonOptions& o) {
  app.add_option("--db", o.db, "database (default gemmtune.db)")->type_name("PATH");
}

void add_format_option(CLI::App& app, CommonOptions& o) {
  app.add_option("--format", o.format, "table, json, csv (default table)")->type_name("FMT");
}

std::vector<ListedShape> listed_shapes(const CommonOptions& o, bool required) {
  std::vector<ListedShape> shapes;
  for (const std::string& text : o.shapes) {
    Shape shape = parse_shape(text);
    bool repeated =
        std::ranges::any_of(shapes, [&](const ListedShape& known) { return known.shape == shape; });
    if (!repeated) shapes.push_back({shape, "", 1});
  }
  if (!o.shapes_file.empty())
    for (ListedShape& listed : read_shape_list(o.shapes_file)) {
      bool repeated =
          std::ranges::any_of(shapes, [&](const ListedShape& known) { return known.shape == listed.shape; });
      if (!repeated) shapes.push_back(std::move(listed));
    }
  if (required && shapes.empty())
    throw UsageError("no shape: give --shape MxNxK or --shapes FILE, for example --shape 4096x4096x4096");
  return shapes;
}

int worker_count(int jobs) {
  if (jobs < 0 || jobs > 1024) throw UsageError("--jobs: a number from 1 to 1024");
  return jobs > 0 ? jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ProblemClass problem_class(const CommonOptions& o) {
  ProblemClass cls;
  cls.in = parse_dtype(o.dtype);
  if (cls.in == DType::f32) throw UsageError("--dtype f32: inputs are f16 or bf16");
  cls.out = o.out_dtype.empty() ? cls.in : parse_dtype(o.out_dtype);
  if (o.a_major != "k" && o.a_major != "m")
    throw UsageError(fmt::format("--a-major '{}': k or m", o.a_major));
  if (o.b_major != "k" && o.b_major != "n")
    throw UsageError(fmt::format("--b-major '{}': k or n", o.b_major));
  cls.a_major = o.a_major == "k" ? Major::k : Major::mn;
  cls.b_major = o.b_major == "k" ? Major::k : Major::mn;
  for (auto [name, value] : {std::pair("--alpha", o.alpha), std::pair("--beta", o.beta)})
    if (!std::isfinite(static_cast<float>(value)))
      throw UsageError(fmt::format("{} {}: a finite number", name, value));
  cls.beta = o.beta != 0;
  return cls;
}

bool names_class(const CLI::App& app) {
  const char* const options[] = {"--dtype", "--out-dtype", "--a-major", "--b-major", "--beta"};
  return std::ranges::any_of(options,
                             [&](const char* option) { return app.get_option(option)->count() > 0; });
}

Target target(const CommonOptions& o) {
  Target t{o.arch.empty() ? nullptr : &find_arch(o.arch), std::nullopt, false, ""};
  bool none = o.device == "none", emulator = o.device == "emulator";
  bool automatic = o.device == "auto";
  int index = -1;
  if (o.device.starts_with("cuda:")) {
    const char* end = o.device.data() + o.device.size();
    auto [stop, error] = std::from_chars(o.device.data() + 5, end, index);
    if (error != std::errc() || stop != end || index < 0) index = -1;
  }
  if (!none && !automatic && !emulator && index < 0)
    throw UsageError(
        fmt::format("unknown device '{}'{}: auto, cuda:0, cuda:1 ..., emulator or none", o.device,
                    did_you_mean(o.device, std::vector<std::string>{"auto", "cuda:0", "emulator", "none"})));

  GpuList list = none || emulator ? GpuList() : list_gpus();
  if (index >= 0) {
    if (!list.driver_problem.empty())
      throw UsageError(fmt::format("--device {}: {}", o.device, list.driver_problem));
    if (index >= static_cast<int>(list.gpus.size()))
      throw UsageError(fmt::format("--device {}: this machine has {} GPU(s)", o.device, list.gpus.size()));
    const GpuInfo& gpu = list.gpus[static_cast<size_t>(index)];
    if (gpu.record.arch.empty())
      throw UsageError(
          fmt::format("{} has compute capability {}.{}: neither tcgen05 nor wgmma, no kernel family runs "
                      "there; --device none compiles for another architecture",
                      gpu.record.name, gpu.cc_major, gpu.cc_minor));
    if (t.arch == nullptr) t.arch = &find_arch(gpu.record.arch);
    if (gpu.record.arch != t.arch->name)
      throw UsageError(fmt::format("--device {} is {}, which runs {}, not {}", o.device, gpu.record.name,
                                   gpu.record.arch, t.arch->name));
    t.gpu = gpu;
    return t;
  }
  for (const GpuInfo& gpu : list.gpus) {
    if (gpu.record.arch.empty() || (t.arch != nullptr && gpu.record.arch != t.arch->name)) continue;
    t.gpu = gpu;
    t.arch = &find_arch(gpu.record.arch);
    return t;
  }
  if (t.arch == nullptr) t.arch = &find_arch("sm_100a");
  t.emulated = !none;
  t.no_gpu_reason = none || emulator               ? "--device " + o.device
                    : !list.driver_problem.empty() ? list.driver_problem
                    : list.gpus.empty()
                        ? "no GPU here"
                        : fmt::format("{} does not run {}", list.gpus[0].record.name, t.arch->name);
  return t;
}

Restrictions restrictions(const CommonOptions& o, const KernelFamily& family) {
  Restrictions result;
  for (const std::string& text : o.set) {
    Restrictions one;
    add_restriction(family, text, one);
    for (auto& [knob, values] : one)
      if (!result.emplace(knob, std::move(values)).second)
        throw UsageError(fmt::format(
            "--set names knob {} twice: give all its values at once, as in --set stages=4,6", knob));
  }
  return result;
}

std::chrono::seconds parse_duration(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  std::string unit(stop, end);
  int64_t factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || factor == 0 || number <= 0 || number > 1000000)
    throw UsageError(
        fmt::format("duration '{}': a positive number of seconds, or with a unit: 90s, 10m, 2h", text));
  return std::chrono::seconds(number * factor);
}

const DeviceSpec& rates_for(const Target& target) {
  if (target.gpu)
    if (const DeviceSpec* known = find_device_spec(target.gpu->record.name)) return *known;
  return *find_device_spec(target.arch->reference_device);
}

}  // namespace gemmtune

// gemmtune compile
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <sstream>

#include "gemm/error.h"
#include "kernel_templates/ladder.h"
#include "search/space.h"
#include "tool/ablation_times.h"
#include "tool/command.h"
#include "tool/compile_variants.h"
#include "tool/ladder_table.h"
#include "tool/options.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

struct CompileArguments {
  CommonOptions common;
  std::string dump, ladder, ablate;
  int jobs = 0, limit = 64;
};

/// Every legal combination of the values that --set names; knobs that it does not name stay at their
/// defaults.
std::vector<Config> named_configs(const KernelFamily& family, const ArchSpec& arch, const ProblemClass& cls,
                                  const Restrictions& set, int limit, std::vector<std::string>& illegal) {
  std::vector<Config> all = {family.default_config()};
  for (size_t i = 0; i < family.knobs().size(); ++i) {
    auto named = set.find(family.knobs()[i].name);
    if (named == set.end()) continue;
    std::vector<Config> next;
    for (const Config& config : all)
      for (int value : named->second) {
        next.push_back(config);
        next.back().values[i] = value;
      }
    all = std::move(next);
    if (static_cast<int>(all.size()) > 100000) throw UsageError("--set names more than 100000 combinations");
  }
  Space space(family, arch, cls, std::nullopt);
  std::vector<Config> legal;
  for (const Config& config : all) {
    std::vector<std::string> reasons = space.violations(config);
    if (reasons.empty()) {
      legal.push_back(config);
    } else if (illegal.size() < 8) {
      illegal.push_back(fmt::format("{}: {}", brief_text(family.knobs(), config), reasons.front()));
    }
  }
  if (legal.empty()) throw UsageError(fmt::format("no legal configuration: {}", illegal.front()));
  if (static_cast<int>(legal.size()) > limit)
    throw UsageError(fmt::format(
        "--set names {} legal configurations: name fewer values, or raise --limit {}", legal.size(), limit));
  return legal;
}

int run_ladder(const CompileArguments& a, const KernelFamily& family, const ArchSpec& arch, int jobs,
               Format format) {
  std::vector<LadderStep> steps = read_ladder(a.ladder, family, arch);
  std::vector<Variant> variants;
  for (const LadderStep& step : steps) variants.push_back({&family, &arch, step.cls, step.config});
  bool all_as_designed = true;
  Table table =
      ladder_table(family, steps, compile_variants(variants, jobs, a.dump), format, all_as_designed);
  fmt::print("{}", table.render(format));
  return all_as_designed ? kDone : kNoWinner;
}

/// "mma,loads": the whole kernel, and behind it each part.
std::vector<Ablation> parts(const std::string& list) {
  std::vector<Ablation> parts = {Ablation::none};
  std::stringstream words(list);
  for (std::string word; std::getline(words, word, ',');) parts.push_back(parse_ablation(word));
  if (!list.empty() && parts.size() == 1) parse_ablation("");
  return parts;
}

struct Rows {
  std::vector<Variant> variants;
  std::vector<CompiledVariant> compiled;
  std::vector<std::optional<double>> times_us;  ///< empty: not asked for
};

/// True if all is as it should be. An ablation's counts are of what is left: nothing to hold them to.
bool print_table(const Rows& rows, bool ablated, Format format) {
  std::vector<Column> columns = {{"config", "config (knobs off their default)", true},
                                 {"outcome", "outcome", true},
                                 {"registers", "registers"},
                                 {"spill_bytes", "spills"},
                                 {"stack_bytes", "stack"},
                                 {"smem_bytes", "smem bytes"},
                                 {"tmem_columns", "tmem"},
                                 {"mma", "mma"},
                                 {"tma_load", "tma.load"},
                                 {"commit", "commit"},
                                 {"mbarrier_wait", "wait"},
                                 {"tmem_load", "tmem.ld"},
                                 {"as_designed", "counts as designed", true},
                                 {"compile_ms", "ms"}};
  if (ablated) columns.insert(columns.begin() + 1, {"part", "part", true});
  if (!rows.times_us.empty()) columns.push_back({"unproven_us", "us (unproven)"});
  Table table(columns);
  bool all_good = true;
  for (size_t i = 0; i < rows.variants.size(); ++i) {
    const Variant& v = rows.variants[i];
    const CompileResult& result = rows.compiled[i].result;
    const StaticEvidence& e = rows.compiled[i].evidence;
    const std::string& rejected = rows.compiled[i].rejected;
    std::string brief = brief_text(v.family->knobs(), v.config);
    std::vector<Cell> cells = {brief};
    if (ablated) cells.push_back(v.ablation == Ablation::none ? "whole" : name(v.ablation));
    if (!result.ok) {
      tell("{}: {}\n", brief, result.log);
      cells.emplace_back(name(Outcome::compile_failed));
      cells.resize(columns.size() - (rows.times_us.empty() ? 1 : 2));
    } else {
      if (!rejected.empty()) tell("{}: {}\n", brief, rejected);
      const InstructionCounts& c = e.counts;
      for (Cell cell :
           std::initializer_list<Cell>{name(rejected.empty() ? Outcome::compiled : Outcome::rejected_static),
                                       e.registers, e.spill_store_bytes + e.spill_load_bytes, e.stack_bytes,
                                       e.static_smem_bytes + e.dynamic_smem_bytes, e.tmem_columns, c.mma,
                                       c.tma_load, c.commit, c.mbarrier_wait, c.tmem_load,
                                       v.ablation != Ablation::none          ? Cell()
                                       : rows.compiled[i].counts_as_designed ? Cell("yes")
                                                                             : Cell("no")})
        cells.push_back(std::move(cell));
    }
    cells.push_back(Cell::real(result.compile_ms, 0));
    if (!rows.times_us.empty()) cells.push_back(rows.times_us[i] ? Cell::real(*rows.times_us[i], 2) : Cell());
    table.add(std::move(cells));
    all_good = all_good && result.ok && rejected.empty();
  }
  fmt::print("{}", table.render(format));
  return all_good;
}

int run(const CompileArguments& a) {
  CommonOptions common = a.common;
  if (a.ablate.empty()) common.device = "none";
  const Target where = target(common);
  const ArchSpec& arch = *where.arch;
  Format format = parse_format(a.common.format);
  if (a.limit < 1) throw UsageError("--limit: a number from 1");
  const int jobs = worker_count(a.jobs);
  const KernelFamily& family = family_for(arch);
  if (!a.ladder.empty()) return run_ladder(a, family, arch, jobs, format);
  ProblemClass cls = problem_class(a.common);
  std::vector<ListedShape> shapes = listed_shapes(a.common, false);
  if (shapes.size() > 1) throw UsageError("--ablate times one --shape at a time");
  std::vector<std::string> illegal;
  std::vector<Config> configs =
      named_configs(family, arch, cls, restrictions(a.common, family), a.limit, illegal);
  for (const std::string& reason : illegal) tell("not legal, left out: {}\n", reason);

  Rows rows;
  for (const Config& config : configs)
    for (Ablation part : parts(a.ablate)) rows.variants.push_back({&family, &arch, cls, config, part});
  rows.compiled = compile_variants(rows.variants, jobs, a.dump);
  if (!shapes.empty()) {
    if (where.gpu) {
      std::vector<CompileResult> results;
      for (const CompiledVariant& one : rows.compiled) results.push_back(one.result);
      rows.times_us = part_times_us(*where.gpu, {cls, shapes[0].shape}, rows.variants, results);
    } else {
      tell("no times: {}\n", where.no_gpu_reason);
    }
  }
  bool all_good = print_table(rows, !a.ablate.empty(), format);
  if (!a.ablate.empty())
    tell("parts leave out work on purpose: their results are wrong, none is stored or can win\n");
  return all_good ? kDone : kNoWinner;
}

}  // namespace

void declare_compile(CLI::App& app, int& status) {
  auto a = std::make_shared<CompileArguments>();
  add_arch_option(app, a->common);
  add_set_option(app, a->common);
  add_type_options(app, a->common);
  app.add_option("--beta", a->common.beta, "0 or not: which problem class (default 0)")->type_name("X");
  app.add_option("--ladder", a->ladder, "compile the steps of this file (examples/ladders), compare counts")
      ->type_name("FILE");
  app.add_option("--ablate", a->ablate, "also each part alone: mma,loads,epilogue")->type_name("PARTS");
  app.add_option("--shape", a->common.shapes, "with --ablate: time them on this problem")->type_name("MxNxK");
  add_device_option(app, a->common);
  app.add_option("--dump", a->dump, "write source, PTX and cubin of each kernel into this folder")
      ->type_name("DIR");
  app.add_option("--limit", a->limit, "refuse more configurations than this (default 64)")->type_name("N");
  app.add_option("--jobs", a->jobs, "compile workers (default: all cores)")->type_name("N");
  add_format_option(app, a->common);
  app.callback([a, &app, &status] {
    if (!a->ladder.empty())
      for (const char* option : {"--set", "--limit", "--dtype", "--out-dtype", "--a-major", "--b-major",
                                 "--beta", "--ablate", "--shape", "--device"})
        if (app.count(option) > 0)
          throw UsageError(
              fmt::format("{} and --ladder: the ladder names each step's class and knobs", option));
    if (a->ablate.empty())
      for (const char* option : {"--shape", "--device"})
        if (app.count(option) > 0)
          throw UsageError(fmt::format("{} is for --ablate: nothing else runs here", option));
    status = run(*a);
  });
}

}  // namespace gemmtune

// gemmtune compare
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "db/queries.h"
#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "kernel_templates/render.h"
#include "search/comparison.h"
#include "search/compiled_kernel.h"
#include "tool/command.h"
#include "tool/executor_for.h"
#include "tool/geomean.h"
#include "tool/live_line.h"
#include "tool/options.h"
#include "tool/output.h"
#include "tool/progress.h"
#include "tool/reservation.h"
#include "tool/table.h"
#include "tool/winner_table.h"

namespace gemmtune {
namespace {

struct CompareArguments {
  CommonOptions common;
  std::vector<std::string> with;
  std::string regime = "burst";
  int rounds = 0, algorithms = 32;
  int64_t seed = 1;
  bool warm = false, no_library = false, db_named = false;
};

/// Databases by the name that rows carry.
using Stores = std::vector<std::pair<std::string, std::unique_ptr<Store>>>;

Stores open_stores(const CompareArguments& a) {
  Stores stores;
  // Without a database there are no winners, which is an answer too, unless the user named one.
  if (a.db_named || std::filesystem::exists(a.common.db))
    stores.emplace_back(a.common.db, std::make_unique<Store>(a.common.db, OpenMode::read_only));
  for (const std::string& path : a.with)
    stores.emplace_back(path, std::make_unique<Store>(path, OpenMode::read_only));
  return stores;
}

/// The one configuration that --set names; other knobs stay at their defaults.
std::optional<Config> set_config(const CompareArguments& a, const KernelFamily& family) {
  if (a.common.set.empty()) return std::nullopt;
  Config config = family.default_config();
  Restrictions named = restrictions(a.common, family);
  for (size_t i = 0; i < family.knobs().size(); ++i) {
    auto found = named.find(family.knobs()[i].name);
    if (found == named.end()) continue;
    if (found->second.size() != 1)
      throw UsageError(fmt::format("--set {}: compare takes one value of a knob", found->first));
    config.values[i] = found->second.front();
  }
  return config;
}

/// Kernels from the databases' caches, else compiled now.
class Kernels {
 public:
  explicit Kernels(const Stores& stores) : stores_(stores) {}

  CompiledKernel get(const Variant& v) {
    if (!pool_) pool_ = std::make_unique<CompilePool>(1);
    std::string source = render(v), target(v.arch->name);
    std::string key = compile_key(source, target, pool_->toolchain());
    for (const auto& [name, store] : stores_)
      if (std::optional<CompiledKernel> kernel = store->find_kernel(key)) return *kernel;
    pool_->submit({key, source, target});
    CompileResult result = pool_->take(key);
    if (!result.ok)
      throw EnvironmentError(
          fmt::format("{} does not compile: {}", to_text(v.family->knobs(), v.config), result.log));
    return compiled_kernel(v, pool_->toolchain(), std::move(result));
  }

 private:
  const Stores& stores_;
  std::unique_ptr<CompilePool> pool_;
};

/// The stored winners of a problem, each configuration once, and the one of --set.
std::vector<Entrant> entrants(const Stores& stores, const Problem& problem, const Timing& timing,
                              const DeviceRecord& device, const std::optional<Config>& set,
                              const KernelFamily& family, const ArchSpec& arch, Kernels& kernels) {
  std::vector<Entrant> found;
  auto enter = [&](const std::string& who, const Config& config) {
    auto same = std::ranges::find_if(found, [&](const Entrant& e) { return e.variant.config == config; });
    if (same != found.end()) {
      same->who += "+" + who;
      return;
    }
    Variant variant{&family, &arch, problem.cls, config};
    found.push_back({who, variant, kernels.get(variant)});
  };
  for (const auto& [name, store] : stores) {
    BestFilter filter;
    filter.problems = {problem};
    filter.timing = timing;
    filter.device_name = device.name;
    for (const BestAnswer& answer : best(*store, filter)) {
      if (!answer.winner || answer.top.front().family != family.name()) continue;
      std::string who = stores.size() == 1 ? "winner" : std::filesystem::path(name).stem().string();
      enter(who, parse_config(family.knobs(), answer.top.front().config));
      break;  // of several GPUs of one name the first
    }
  }
  if (!set) return found;
  std::vector<std::string> reasons = Space(family, arch, problem.cls, problem.shape).violations(*set);
  if (!reasons.empty())
    throw UsageError(fmt::format("--set: illegal for {}: {}", to_string(problem.shape), reasons.front()));
  enter("--set", *set);
  return found;
}

/// Shapes with a winner in any database, where the command line names none.
std::vector<ListedShape> stored_shapes(const Stores& stores, const ProblemClass& cls, const Timing& timing,
                                       const DeviceRecord& device) {
  std::vector<ListedShape> shapes;
  for (const auto& [name, store] : stores) {
    BestFilter filter;
    filter.cls = cls;
    filter.timing = timing;
    filter.device_name = device.name;
    for (const BestAnswer& answer : best(*store, filter))
      if (answer.winner &&
          std::ranges::find(shapes, answer.problem.shape, &ListedShape::shape) == shapes.end())
        shapes.push_back({answer.problem.shape, "", 1});
  }
  return shapes;
}

int run(const CompareArguments& a) {
  Format format = parse_format(a.common.format);
  CompareOptions o;
  o.regime = parse_regime(a.regime);
  o.warm_l2 = a.warm;
  if (a.rounds < 0 || a.rounds > 10000) throw UsageError("--rounds: a number from 1 to 10000");
  o.rounds = a.rounds > 0 ? a.rounds : o.regime == Regime::burst ? 20 : 6;
  if (a.algorithms < 1 || a.algorithms > 1000) throw UsageError("--algorithms: a number from 1 to 1000");
  o.algorithms = a.no_library ? 0 : a.algorithms;
  if (a.seed < 0) throw UsageError("--seed: a number from 0");
  o.seed = static_cast<uint64_t>(a.seed);
  o.alpha = static_cast<float>(a.common.alpha);
  o.beta = static_cast<float>(a.common.beta);
  ProblemClass cls = problem_class(a.common);
  std::vector<ListedShape> shapes = listed_shapes(a.common, false);
  if (a.common.device == "none" || a.common.device == "emulator")
    throw UsageError(
        fmt::format("--device {}: compare measures, so it needs a GPU: auto or cuda:N", a.common.device));
  Stores stores = open_stores(a);
  Target where = target(a.common);
  if (!where.gpu) throw EnvironmentError("compare measures, so it needs a GPU: " + where.no_gpu_reason);
  const KernelFamily& family = family_for(*where.arch);
  std::optional<Config> set = set_config(a, family);
  Timing timing{.regime = o.regime, .warm_l2 = o.warm_l2};
  std::unique_ptr<Executor> executor = executor_for(where);
  DeviceRecord device = executor->device();
  if (shapes.empty()) shapes = stored_shapes(stores, cls, timing, device);
  if (shapes.empty()) throw UsageError("no shape: give --shape MxNxK or --shapes FILE, or tune some first");

  Kernels kernels(stores);
  Table table({{"m", "M"},
               {"n", "N"},
               {"k", "K"},
               {"name", "name", true},
               {"who", "who", true},
               {"time_us", "time us"},
               {"tflops", "TFLOP/s"},
               {"ratio", "ratio"},
               {"ratio_low", "95 %"},
               {"ratio_high", "to"},
               {"spread", "spread"},
               {"samples", "samples"},
               {"launch", "launch", true},
               {"validated", "validated", true},
               {"obtained", "obtained", true},
               {"config", "config (knobs off their default), or the library's ids", true}});
  Geomean first, best_of_library;
  bool all_won = true;
  size_t index = 0;
  LiveLine line;
  std::string head;  ///< of this shape's lines
  o.now = [&](const std::string& step) { line.show(fmt::format("{}: {}", head, step)); };
  for (const ListedShape& listed : shapes) {
    Problem problem{cls, listed.shape};
    std::vector<Entrant> ours = entrants(stores, problem, timing, device, set, family, *where.arch, kernels);
    if (ours.empty()) all_won = false;
    head = fmt::format("[{}/{}] {}", ++index, shapes.size(), shape_text(listed));
    DeviceReservation reservation(*executor);
    Comparison c = compare(*executor, problem, ours, o);
    std::string text = head;
    if (!c.problem.empty()) {
      line.say(fmt::format("{}: {}", text, c.problem));
      all_won = false;
      continue;
    }
    if (!c.library_problem.empty() && index == 1) throw EnvironmentError(c.library_problem);
    if (c.algorithms > 0)
      text += fmt::format(": {} algorithms of the library, {} of them not exact", c.algorithms,
                          c.wrong_algorithms);
    if (c.marked > 0) text += fmt::format(", {} disturbed samples repeated", c.marked);
    line.say(text + (ours.empty() ? "; no winner of ours" : ""));
    for (const Compared& row : c.rows) {
      const Shape& s = listed.shape;
      bool timed = row.median_us > 0, right = row.outcome.outcome == Outcome::ok;
      if (!right) tell("  {}: {}: {}\n", row.who, name(row.outcome.outcome), row.outcome.message);
      table.add({s.m, s.n, s.k, listed.name, row.who, timed ? Cell::real(row.median_us, 2) : Cell(),
                 timed ? Cell::real(tflops(s, row.median_us), 1) : Cell(),
                 timed ? Cell::real(row.ratio.median, 3) : Cell(),
                 timed ? Cell::real(row.ratio.interval.low, 3) : Cell(),
                 timed ? Cell::real(row.ratio.interval.high, 3) : Cell(),
                 timed ? Cell::share(row.relative_spread) : Cell(), row.samples.size(),
                 launch_text(row.launch_cost), right ? "exact" : std::string(name(row.outcome.outcome)),
                 fmt::format("measured on {} ({}, {} L2)", device.name, name(o.regime),
                             o.warm_l2 ? "warm" : "cold"),
                 row.what});
      if (ours.empty() || !timed) continue;
      if (row.who.ends_with(" first")) first.add(row.ratio.median);
      if (row.who.ends_with(" best")) best_of_library.add(row.ratio.median);
    }
  }
  fmt::print("{}", table.render(format));
  if (first.count() > 0)
    tell(
        "time of the library / the first row, geomean over {} shape{}: its first choice {:.3f}, its best "
        "{:.3f}\n",
        first.count(), first.count() == 1 ? "" : "s", first.value(), best_of_library.value());
  if (!all_won) tell("some shapes have no valid winner\n");
  return all_won ? kDone : kNoWinner;
}

}  // namespace

void declare_compare(CLI::App& app, int& status) {
  auto a = std::make_shared<CompareArguments>();
  add_shape_options(app, a->common);
  add_device_option(app, a->common);
  add_type_options(app, a->common);
  add_scaling_options(app, a->common);
  app.add_option("--set", a->common.set, "a configuration to compare too: knob=value; repeatable")
      ->type_name("KNOB=V")
      ->allow_extra_args(false);
  app.add_option("--regime", a->regime, "burst, sustained (default burst)")->type_name("NAME");
  app.add_flag("--warm", a->warm, "operands that L2 holds, as far as they fit");
  app.add_option("--rounds", a->rounds, "samples of everyone (default 20; sustained 6)")->type_name("N");
  app.add_option("--algorithms", a->algorithms, "how many the library is asked for (default 32)")
      ->type_name("N");
  app.add_flag("--no-library", a->no_library, "compare configurations with each other alone");
  app.add_option("--seed", a->seed, "of the order (default 1)")->type_name("N");
  CLI::Option* db = app.add_option("--db", a->common.db, "database with the winners (default gemmtune.db)")
                        ->type_name("PATH");
  app.add_option("--with", a->with, "winners of this database too; repeatable")
      ->type_name("PATH")
      ->allow_extra_args(false);
  add_format_option(app, a->common);
  app.callback([a, db, &status] {
    a->db_named = db->count() > 0;
    status = run(*a);
  });
}

}  // namespace gemmtune

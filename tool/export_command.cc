// gemmtune export
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "db/export.h"
#include "db/winners.h"
#include "gemm/error.h"
#include "gemm/suggest.h"
#include "tool/command.h"
#include "tool/db_journal.h"
#include "tool/options.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

struct ExportArguments {
  CommonOptions common;
  std::string format = "header", output, regime = "burst", gpu;
  bool any_class = true, warm = false;
};

void write(const std::string& text, const std::string& path) {
  if (path.empty()) {
    fmt::print("{}", text);
    return;
  }
  write_whole_file(path, text);
}

int run(const ExportArguments& a) {
  if (a.format != "header" && a.format != "json" && a.format != "csv") {
    const std::vector<std::string> known = {"header", "json", "csv"};
    throw UsageError(
        fmt::format("unknown format '{}'{}: header, json or csv", a.format, did_you_mean(a.format, known)));
  }
  ExportFilter filter;
  filter.regime = parse_regime(a.regime);
  filter.warm_l2 = a.warm;
  if (!a.common.arch.empty()) filter.arch = std::string(find_arch(a.common.arch).name);
  if (!a.gpu.empty()) filter.device_name = a.gpu;
  std::vector<ListedShape> shapes = listed_shapes(a.common, false);
  ProblemClass cls = problem_class(a.common);
  if (!a.any_class && shapes.empty()) filter.cls = cls;
  for (const ListedShape& listed : shapes) filter.problems.push_back({cls, listed.shape});

  Store store(a.common.db, OpenMode::read_only);
  Exportable found = exportable_winners(store, filter);
  for (const std::string& reason : found.skipped) tell("not exported: {}\n", reason);
  if (found.rows.empty() && !a.output.empty()) {
    tell("no winner to export: {} is not written; gemmtune best says what {} holds\n", a.output, a.common.db);
    return kNoWinner;
  }
  Provenance provenance{GEMMTUNE_VERSION, a.common.db,
                        fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))};
  auto knobs_of = [](std::string_view family) -> const std::vector<Knob>* {
    const KernelFamily* known = find_family(family);
    return known == nullptr ? nullptr : &known->knobs();
  };
  write(a.format == "header" ? to_header(found.rows, provenance, knobs_of)
        : a.format == "json" ? to_json(found.rows, provenance)
                             : to_csv(found.rows),
        a.output);
  tell("{} winner{} exported{}\n", found.rows.size(), found.rows.size() == 1 ? "" : "s",
       a.output.empty() ? "" : fmt::format(" to {}", a.output));
  return found.rows.empty() || !found.skipped.empty() ? kNoWinner : kDone;
}

}  // namespace

void declare_export(CLI::App& app, int& status) {
  auto a = std::make_shared<ExportArguments>();
  app.add_option("--format", a->format, "header, json, csv (default header)")->type_name("FMT");
  app.add_option("--output,-o", a->output, "file to write (default: stdout)")->type_name("FILE");
  add_shape_options(app, a->common);
  add_arch_option(app, a->common);
  app.add_option("--gpu", a->gpu, "only winners of this device, by name: \"NVIDIA H200\"")->type_name("NAME");
  app.add_option("--regime", a->regime, "burst, sustained (default burst)")->type_name("NAME");
  app.add_flag("--warm", a->warm, "winners with operands that L2 holds (default: cold)");
  add_type_options(app, a->common);
  app.add_option("--beta", a->common.beta, "0 or not: which problem class (default 0)")->type_name("X");
  add_db_option(app, a->common);
  app.callback([a, &status, &app] {
    a->any_class = !names_class(app);
    status = run(*a);
  });
}

}  // namespace gemmtune

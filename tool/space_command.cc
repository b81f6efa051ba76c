// gemmtune space
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <set>

#include "gemm/error.h"
#include "search/space.h"
#include "tool/command.h"
#include "tool/options.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

struct SpaceArguments {
  CommonOptions common;
  std::optional<std::string> explain;
  std::optional<int> list;
};

std::string values_text(const Knob& knob, const std::vector<int>& values) {
  std::vector<std::string> words;
  for (int value : values) words.push_back(value_text(knob, value));
  return fmt::format("{}", fmt::join(words, " "));
}

int explain(const Space& space, const std::string& text, Format format) {
  if (format == Format::csv) throw UsageError("--explain: table or json");
  const auto& knobs = space.family().knobs();
  std::string config_text;
  std::set<std::string> named;
  for (size_t begin = 0; begin <= text.size();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    std::string item = text.substr(begin, comma - begin);
    std::string knob = item.substr(0, item.find('='));
    if (!named.insert(knob).second) throw UsageError(fmt::format("--explain names knob {} twice", knob));
    if (item.starts_with("swizzle=")) {  // stands for both operands here too
      std::string value = item.substr(std::string("swizzle=").size());
      item = "swizzle_a=" + value + ",swizzle_b=" + value;
    }
    config_text += (config_text.empty() ? "" : ",") + item;
    begin = comma + 1;
  }
  Config config = parse_config(knobs, config_text);
  std::vector<std::string> reasons = space.violations(config);
  if (format == Format::json) {
    nlohmann::ordered_json answer = {
        {"config", to_text(knobs, config)}, {"legal", reasons.empty()}, {"reasons", reasons}};
    fmt::print("{}\n", answer.dump(2));
    return reasons.empty() ? kDone : kNoWinner;
  }
  fmt::print("{}\n", to_text(knobs, config));
  if (reasons.empty()) {
    LaunchPlan plan = space.family().plan(config, space.cls(), space.arch(), {1, 1, 1}, {1, 1}, 1, 0);
    fmt::print("legal: {} threads, {} bytes of shared memory{}\n", plan.block.x, plan.dynamic_smem_bytes,
               space.arch().tmem_columns > 0
                   ? fmt::format(", {} columns of tensor memory", space.family().tmem_columns(config))
                   : "");
    return kDone;
  }
  for (const std::string& reason : reasons) fmt::print("illegal: {}\n", reason);
  return kNoWinner;
}

/// The first `count` legal configurations; for programs one column a knob.
int list(const Space& space, int count, Format format) {
  const auto& knobs = space.family().knobs();
  std::vector<Column> columns;
  for (const Knob& knob : knobs) columns.push_back({std::string(knob.name), std::string(knob.name)});
  Table table(columns);
  int left = count;
  space.for_each([&](const Config& config) {
    if (format == Format::table) {
      fmt::print("{}\n", to_text(knobs, config));
    } else {
      std::vector<Cell> row;
      for (size_t i = 0; i < knobs.size(); ++i) row.emplace_back(value_text(knobs[i], config.values[i]));
      table.add(std::move(row));
    }
    return --left > 0;
  });
  if (format != Format::table) fmt::print("{}", table.render(format));
  if (left < count) return kDone;
  tell("no legal configuration: the same command without --list says why\n");
  return kNoWinner;
}

int run(const SpaceArguments& a) {
  CommonOptions common = a.common;
  common.device = "none";
  Target where = target(common);
  Format format = parse_format(a.common.format);
  const KernelFamily& family = family_for(*where.arch);
  ProblemClass cls = problem_class(a.common);
  Restrictions allowed = restrictions(a.common, family);
  std::vector<ListedShape> shapes = listed_shapes(a.common, false);

  std::optional<Shape> first = shapes.empty() ? std::nullopt : std::optional(shapes[0].shape);
  if (a.list && *a.list < 1) throw UsageError("--list: a number from 1");
  if (a.explain) return explain(Space(family, *where.arch, cls, first, allowed), *a.explain, format);
  if (a.list) return list(Space(family, *where.arch, cls, first, allowed), *a.list, format);

  if (format == Format::table) {
    fmt::print("{} for {}, {}\n\n", family.name(), where.arch->name, to_string(cls));
    Table knobs({{"knob", "knob", true},
                 {"default", "default", true},
                 {"values", "values", true},
                 {"meaning", "meaning", true}});
    Space space(family, *where.arch, cls, first, allowed);
    for (size_t i = 0; i < family.knobs().size(); ++i) {
      const Knob& knob = family.knobs()[i];
      knobs.add({knob.name, value_text(knob, knob.default_value), values_text(knob, space.values()[i]),
                 knob.meaning});
    }
    fmt::print("{}\n", knobs.render(Format::table));
    fmt::print("what a uniformly drawn configuration fails, most frequent first:\n");
    for (const Space::Rejection& r : space.rejections(20000, 1))
      fmt::print("  {:>4.0f} %  {:<12} e.g. {}\n", 100 * r.share, r.constraint, r.example);
    fmt::print("\n");
  }
  Table table({{"m", "M"},
               {"n", "N"},
               {"k", "K"},
               {"name", "name", true},
               {"legal_configs", "legal configs"},
               {"kernels", "distinct kernels"},
               {"note", "note", true}});
  if (shapes.empty()) shapes.push_back({{0, 0, 0}, "any aligned shape", 1});
  bool all = true;
  for (const ListedShape& listed : shapes) {
    std::optional<Shape> shape = listed.shape.m > 0 ? std::optional(listed.shape) : std::nullopt;
    Space space(family, *where.arch, cls, shape, allowed);
    int64_t legal = space.count();
    std::string note;
    if (legal == 0) {
      all = false;
      std::vector<Space::Rejection> why = space.rejections(2000, 1);
      note = why.empty() ? "" : why.front().example;
    }
    table.add({shape ? Cell(listed.shape.m) : Cell(), shape ? Cell(listed.shape.n) : Cell(),
               shape ? Cell(listed.shape.k) : Cell(), listed.name, legal, space.count_kernels(), note});
  }
  fmt::print("{}", table.render(format));
  return all ? kDone : kNoWinner;
}

}  // namespace

void declare_space(CLI::App& app, int& status) {
  auto a = std::make_shared<SpaceArguments>();
  add_arch_option(app, a->common);
  add_shape_options(app, a->common);
  app.add_option("--explain", a->explain, "say of one configuration whether it is legal, and why not")
      ->type_name("KNOB=V,...");
  app.add_option("--list", a->list, "print the first N legal configurations")->type_name("N");
  add_set_option(app, a->common);
  add_type_options(app, a->common);
  app.add_option("--beta", a->common.beta, "0 or not: which problem class (default 0)")->type_name("X");
  add_format_option(app, a->common);
  app.callback([a, &status] { status = run(*a); });
}

}  // namespace gemmtune

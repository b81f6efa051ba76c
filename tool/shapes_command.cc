// gemmtune shapes
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <optional>

#include "gemm/error.h"
#include "gemm/model_shapes.h"
#include "tool/command.h"
#include "tool/options.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

struct ShapesArguments {
  std::string config, format = "csv";
  std::optional<std::string> tokens;
  int tp = 1;
};

std::vector<int64_t> parse_tokens(const std::string& text) {
  std::vector<int64_t> tokens;
  const char* at = text.data();
  const char* end = at + text.size();
  while (true) {
    int64_t value = 0;
    auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || value <= 0 || value > 2147483647 || (stop != end && *stop != ','))
      throw UsageError(
          fmt::format("--tokens '{}': positive numbers with commas, for example 1,64,8192", text));
    tokens.push_back(value);
    if (stop == end) return tokens;
    at = stop + 1;
  }
}

int run(const ShapesArguments& a) {
  if (a.config.empty()) throw UsageError("no model: give --hf-config config.json");
  if (a.tp < 1) throw UsageError("--tp: a positive number");
  Format format = parse_format(a.format);
  std::vector<int64_t> tokens;
  if (a.tokens) tokens = parse_tokens(*a.tokens);
  ModelShapes model = model_shapes(a.config, a.tp);
  for (const std::string& remark : model.remarks) tell("{}\n", remark);
  if (tokens.empty()) {
    // Without token counts: the projections themselves.
    Table table({{"projection", "projection", true},
                 {"n", "N"},
                 {"k", "K"},
                 {"count", "runs a pass"},
                 {"note", "note", true}});
    for (const Projection& p : model.projections) table.add({p.name, p.n, p.k, p.count, p.note});
    fmt::print("{}", table.render(format));
    tell("keys read: {}\n", fmt::join(model.keys_read, ", "));
    if (!model.keys_defaulted.empty()) tell("defaulted: {}\n", fmt::join(model.keys_defaulted, ", "));
    return kDone;
  }
  std::vector<ListedShape> shapes = shapes_for_tokens(model, tokens);
  if (format == Format::csv) {
    fmt::print("# gemmtune shapes --hf-config {} --tokens {}{}\n",
               a.config.substr(a.config.find_last_of('/') + 1), *a.tokens,
               a.tp == 1 ? "" : fmt::format(" --tp {}", a.tp));
    fmt::print("{}", to_csv(shapes));
    return kDone;
  }
  Table table({{"m", "M"}, {"n", "N"}, {"k", "K"}, {"name", "name", true}, {"weight", "weight"}});
  for (const ListedShape& s : shapes)
    table.add({s.shape.m, s.shape.n, s.shape.k, s.name, Cell::real(s.weight, 0)});
  fmt::print("{}", table.render(format));
  return kDone;
}

}  // namespace

void declare_shapes(CLI::App& app, int& status) {
  auto a = std::make_shared<ShapesArguments>();
  app.add_option("--hf-config", a->config, "a Hugging Face config.json, or its folder")->type_name("FILE");
  app.add_option("--tokens", a->tokens, "token counts M, with commas; without: the projections alone")
      ->type_name("M,...");
  app.add_option("--tp", a->tp, "tensor-parallel ranks (default 1)")->type_name("N");
  app.add_option("--format", a->format, "csv (for --shapes), table, json (default csv)")->type_name("FMT");
  app.callback([a, &status] { status = run(*a); });
}

}  // namespace gemmtune

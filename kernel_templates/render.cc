#include "kernel_templates/render.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "kernel_templates/embedded.h"

namespace gemmtune {
namespace {

std::string_view embedded_text(std::string_view name) {
  for (const auto& file : kernel_templates_embedded())
    if (file.name == name) return file.text;
  throw std::logic_error(fmt::format("no embedded template '{}'", name));
}

/// Copies `file` line by line; an #include is replaced by the file's text the first time it is met.
void inline_file(std::string_view file, std::set<std::string, std::less<>>& done, std::string& out) {
  if (!done.emplace(file).second) return;
  std::string_view text = embedded_text(file);
  constexpr std::string_view kInclude = "#include \"";
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.starts_with(kInclude)) {
      line.remove_prefix(kInclude.size());
      inline_file(line.substr(0, line.find('"')), done, out);
    } else if (line != "#pragma once") {
      out.append(line).push_back('\n');
    }
  }
}

std::string_view type_name(DType type) {
  return type == DType::f16 ? "Type::f16" : type == DType::bf16 ? "Type::bf16" : "Type::f32";
}

}  // namespace

Config compiled_part(const KernelFamily& family, const Config& config) {
  Config result = config;
  for (size_t i = 0; i < family.knobs().size(); ++i)
    if (!family.knobs()[i].compiled) result.values[i] = family.knobs()[i].default_value;
  return result;
}

std::string render(const Variant& v) {
  const std::vector<Knob>& knobs = v.family->knobs();
  Config config = compiled_part(*v.family, v.config);
  std::string out = fmt::format("// {} for {}, {}\n// {}\n\n", v.family->name(), v.arch->name,
                                to_string(v.cls), to_text(knobs, config));
  std::set<std::string, std::less<>> done;
  inline_file("device/types.cuh", done, out);
  out += "\nnamespace knob {\n";
  for (size_t i = 0; i < knobs.size(); ++i)
    if (knobs[i].compiled) out += fmt::format("constexpr int {} = {};\n", knobs[i].name, config.values[i]);
  out += fmt::format(
      "}}  // namespace knob\n\nnamespace problem {{\nconstexpr Type in_type = {};\nconstexpr Type out_type "
      "= {};\n"
      "constexpr bool a_mn_major = {};\nconstexpr bool b_mn_major = {};\nconstexpr bool beta = {};\n"
      "}}  // namespace problem\n\n",
      type_name(v.cls.in), type_name(v.cls.out), v.cls.a_major == Major::mn, v.cls.b_major == Major::mn,
      v.cls.beta);
  auto has = [&](Ablation only) { return v.ablation == Ablation::none || v.ablation == only; };
  out += fmt::format(
      "// What the kernel does: everything, but for ablations.\nnamespace part {{\nconstexpr bool copies = "
      "{};\n"
      "constexpr bool multiplies = {};\nconstexpr bool drains = {};\n}}  // namespace part\n\n",
      has(Ablation::loads), has(Ablation::mma), has(Ablation::epilogue));
  out += v.family->preamble(v.config, v.cls, *v.arch);
  inline_file(v.family->template_file(), done, out);
  return out;
}

}  // namespace gemmtune

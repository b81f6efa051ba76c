#include "tool/compile_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "gemm/error.h"
#include "gpu/compile_pool.h"
#include "kernel_templates/render.h"
#include "search/static_check.h"
#include "tool/output.h"

namespace gemmtune {
namespace {

void dump_variant(const std::string& folder, const Variant& v, const std::string& source,
                  const CompileResult& result) {
  std::string stem =
      fmt::format("{}_{}_{}_{}", v.family->name(), v.arch->name, to_string(v.cls), result.key.substr(0, 12));
  std::string base = (std::filesystem::path(folder) / stem).string();
  write_whole_file(base + ".cu", source);
  write_whole_file(base + ".ptx", result.ptx);
  write_whole_file(base + ".cubin", result.cubin);
}

}  // namespace

std::vector<CompiledVariant> compile_variants(const std::vector<Variant>& variants, int jobs,
                                              const std::string& dump) {
  if (!dump.empty()) {
    std::error_code error;
    std::filesystem::create_directories(dump, error);
    if (error) throw EnvironmentError(fmt::format("cannot make folder {}: {}", dump, error.message()));
  }
  CompilePool compiler(jobs);
  std::vector<std::string> keys, sources;
  for (const Variant& v : variants) {
    sources.push_back(render(v));
    keys.push_back(compile_key(sources.back(), std::string(v.arch->name), compiler.toolchain()));
    if (std::find(keys.begin(), keys.end() - 1, keys.back()) == keys.end() - 1)
      compiler.submit({keys.back(), sources.back(), std::string(v.arch->name)});
  }
  std::map<std::string, CompileResult> results;
  std::vector<CompiledVariant> compiled;
  for (size_t i = 0; i < variants.size(); ++i) {
    const Variant& v = variants[i];
    if (!results.contains(keys[i])) results[keys[i]] = compiler.take(keys[i]);
    CompiledVariant& one = compiled.emplace_back();
    one.result = results[keys[i]];
    one.evidence = one.result.evidence;
    if (!one.result.ok) continue;
    one.evidence = planned_evidence(v, one.result.evidence);
    one.rejected = static_violation(v, one.evidence);
    one.counts_as_designed = one.evidence.counts == v.family->expected_counts(v.config, v.cls);
    if (!dump.empty()) dump_variant(dump, v, sources[i], one.result);
  }
  return compiled;
}

}  // namespace gemmtune

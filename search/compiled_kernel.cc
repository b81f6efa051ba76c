#include "search/compiled_kernel.h"

#include <utility>

#include "kernel_templates/render.h"
#include "search/static_check.h"

namespace gemmtune {

CompiledKernel compiled_kernel(const Variant& v, const Toolchain& toolchain, CompileResult result) {
  CompiledKernel kernel;
  kernel.key = std::move(result.key);
  kernel.family = v.family->name();
  kernel.arch = v.arch->name;
  kernel.problem_class = to_string(v.cls);
  kernel.config = to_text(v.family->knobs(), compiled_part(*v.family, v.config));
  kernel.toolchain = toolchain;
  kernel.ok = result.ok;
  kernel.cubin = std::move(result.cubin);
  kernel.ptx = std::move(result.ptx);
  kernel.evidence = planned_evidence(v, result.evidence);
  kernel.compile_ms = result.compile_ms;
  kernel.log = std::move(result.log);
  return kernel;
}

}  // namespace gemmtune

#include "emulator/exec.h"

#include <fmt/format.h>

namespace gemmtune::emulator {

SharedPlace shared_cta(Warp& w, uint64_t address, bool own_only) {
  address = plain_shared(address);
  uint32_t rank = static_cast<uint32_t>(address >> kRankShift);
  if (address >> 32 || rank >= w.cta->cluster->ctas.size())
    throw Fault(Check::out_of_bounds, fmt::format("shared address {:#x} names CTA rank {} of a cluster of {}",
                                                  address, rank, w.cta->cluster->ctas.size()));
  if (own_only && rank != w.cta->rank)
    throw Fault(
        Check::illegal_instruction,
        fmt::format("shared address {:#x} belongs to CTA rank {}, the instruction may only reach its own CTA "
                    "(rank {})",
                    address, rank, w.cta->rank));
  return {w.cta->cluster->ctas[rank].get(), static_cast<uint32_t>(address) & kSharedOffsetMask};
}

SharedPlace shared_place(Warp& w, uint64_t address, uint32_t bytes, bool own_only) {
  SharedPlace p = shared_cta(w, address, own_only);
  if (p.offset < kSharedBase || p.offset + uint64_t{bytes} > p.cta->smem.size())
    throw Fault(Check::out_of_bounds,
                fmt::format("shared address {:#x}: {} bytes at offset {:#x} lie outside [{:#x}, {:#x})",
                            address, bytes, p.offset, kSharedBase, p.cta->smem.size()));
  if (p.cta->exited && p.cta != w.cta)
    throw Fault(Check::peer_exit,
                fmt::format("shared memory of CTA rank {} is used, but that CTA has exited", p.cta->rank));
  return p;
}

uint8_t* global_place(Warp& w, uint64_t address, uint32_t bytes, bool write) {
  Launch& launch = *w.cta->cluster->launch;
  if (uint8_t* at = launch.memory->find(address, bytes, &w.hint)) return at;
  if (address >> kWindowShift == kModuleWindow >> kWindowShift) {
    uint64_t offset = address - kModuleWindow;
    const auto& variables = launch.program->parsed->variables;
    for (size_t i = 0; i < variables.size(); ++i) {
      const Variable& v = variables[i];
      uint64_t start = launch.program->module_variable_offsets[i];
      if (offset < start || bytes > v.bytes || offset - start > v.bytes - bytes) continue;
      if (write && v.space == StateSpace::constant)
        throw Fault(Check::out_of_bounds, "write to constant memory");
      return launch.module_memory->data() + offset;
    }
    throw Fault(Check::out_of_bounds, fmt::format("address {:#x} is in no module variable", address));
  }
  const char* kind = write ? "write" : "read";
  if (address >> kWindowShift == kSharedWindow >> kWindowShift)
    throw Fault(Check::out_of_bounds,
                fmt::format("global {} at {:#x}, an address in shared memory", kind, address));
  throw Fault(Check::out_of_bounds, fmt::format("global {} of {} bytes at {:#x}: {}", kind, bytes, address,
                                                launch.memory->describe(address)));
}

uint8_t* local_place(Warp& w, int lane, uint64_t offset, uint32_t bytes) {
  uint32_t frame = w.cta->cluster->launch->function->local_bytes;
  if (offset > frame || bytes > frame - offset)
    throw Fault(Check::out_of_bounds,
                fmt::format("local address {:#x} lies outside the frame of {} bytes", offset, frame));
  return w.local.get() + static_cast<size_t>(lane) * frame + offset;
}

uint8_t* generic_place(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write) {
  uint64_t window = address >> kWindowShift << kWindowShift;
  if (window == kLocalWindow) return local_place(w, lane, address - kLocalWindow, bytes);
  if (window == kParamWindow) {
    auto& params = w.cta->cluster->launch->params;
    uint64_t offset = address - kParamWindow;
    if (write || offset > params.size() || bytes > params.size() - offset)
      throw Fault(Check::out_of_bounds,
                  fmt::format("bad access to kernel parameters at offset {:#x}", offset));
    return params.data() + offset;
  }
  if (window == kSharedWindow) {
    SharedPlace p = shared_place(w, address, bytes, false);
    if (write)
      note_generic_write(w, lane, *p.cta, p.offset, bytes);
    else
      note_generic_read(w, *p.cta, p.offset, bytes);
    return p.cta->smem.data() + p.offset;
  }
  if (write) note_global_write(w, lane, address, bytes);
  return global_place(w, address, bytes, write);
}

// --- convergence ---

bool converged(Warp& w, Fragment& f, Mask required) {
  if ((f.mask & required) == required) return true;
  f.state = Fragment::State::converging;
  f.wait_on(&w.version);
  f.describe_wait = [&w, &f, required] {
    return fmt::format("lanes {:#010x} wait for lanes {:#010x} to reach the same instruction", f.mask,
                       required & ~f.mask & w.live);
  };
  return false;
}

bool aligned(Warp& w, Fragment& f, Mask mask) {
  if (!converged(w, f, w.live)) return false;
  if (mask != f.mask)
    throw Fault(Check::convergence,
                fmt::format("an .aligned instruction runs with lanes {:#010x} of {:#010x}", mask, f.mask));
  return true;
}

void report_here(Warp& w, Severity severity, Check check, const std::string& message) {
  w.cta->cluster->report(severity, check, w.cta, w.index, w.current ? w.current->line : 0, message);
}

void submit(Warp& w, const void* queue, std::function<void()> run) {
  Cluster& cluster = *w.cta->cluster;
  if (cluster.launch->config.schedule.policy == SchedulePolicy::eager) {
    run();
    ++cluster.events;
    return;
  }
  AsyncEngine::Task task;
  task.run = std::move(run);
  task.cta = w.cta;
  task.warp = w.index;
  task.line = w.current ? w.current->line : 0;
  cluster.async.submit(queue, std::move(task));
}

void trace(Warp& w, TraceEvent::Kind kind, const std::string& what, uint32_t id) {
  if (!tracing(w)) return;
  TraceEvent e;
  e.kind = kind;
  e.time = w.cta->cluster->instructions;
  e.cta = w.cta->ctaid;
  e.warp = w.index;
  e.line = w.current && kind != TraceEvent::Kind::complete ? w.current->line : 0;
  e.id = id;
  e.what = what;
  w.cta->cluster->launch->config.trace(e);
}

}  // namespace gemmtune::emulator

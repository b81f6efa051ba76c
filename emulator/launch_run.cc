#include "emulator/launch_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "emulator/element.h"
#include "emulator/program.h"
#include "gemm/error.h"
#include "gemm/fill.h"
#include "gemm/text_file.h"

namespace gemmtune::emulator {
namespace {

std::vector<uint8_t> file_bytes(const BufferSpec& buffer, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<uint8_t> bytes(buffer.bytes() + 1);
  if (in) in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (in.bad() || !in.is_open())
    throw UsageError(fmt::format("buffer {}: cannot read {}", buffer.name, printable(path)));
  if (static_cast<size_t>(in.gcount()) != buffer.bytes())
    throw UsageError(
        fmt::format("buffer {}: {} does not have {} bytes", buffer.name, printable(path), buffer.bytes()));
  bytes.resize(buffer.bytes());
  return bytes;
}

std::string place_text(const BufferSpec& buffer, int64_t index) {
  std::vector<int64_t> place(buffer.shape.size());
  for (size_t i = place.size(); i-- > 0; index /= buffer.shape[i]) place[i] = index % buffer.shape[i];
  return fmt::format("[{}]", fmt::join(place, ", "));
}

}  // namespace

LaunchRun::LaunchRun(const LaunchFile& file, Module& module) : file_(file), module_(module) {
  std::vector<std::string> kernels = module.kernels();
  kernel_ = file.kernel;
  if (kernel_.empty()) {
    if (kernels.size() != 1)
      throw UsageError(fmt::format("the PTX has {} kernels: name one as \"kernel\"{}", kernels.size(),
                                   kernels.empty() ? "" : fmt::format(" ({})", fmt::join(kernels, ", "))));
    kernel_ = kernels[0];
  }
  if (module.program().find_entry(kernel_) == nullptr)
    throw UsageError(fmt::format("no kernel '{}' in the PTX: it has {}", printable(kernel_),
                                 kernels.empty() ? "none" : fmt::format("{}", fmt::join(kernels, ", "))));
  for (const BufferSpec& b : file_.buffers) {
    initial_[b.name] = initial(b);
    addresses_[b.name] = device_.allocate(b.bytes());
  }
  for (TensorMapEntry& entry : file_.tensor_maps) {
    entry.map.address = address(entry.buffer) + entry.offset_bytes;
    bool blackwell = !module.program().has_target("sm_90");
    if (std::string why = check_tensor_map(entry.map, blackwell); !why.empty())
      throw UsageError(fmt::format("tensor map {}: {}", entry.name, why));
    maps_[entry.name] = encode_tensor_map(entry.map, blackwell);
  }
  params_ = parameter_bytes();
}

const BufferSpec& LaunchRun::buffer(const std::string& name) const {
  for (const BufferSpec& b : file_.buffers)
    if (b.name == name) return b;
  throw std::logic_error("buffer names were checked when the file was read");
}

std::vector<uint8_t> LaunchRun::parameter_bytes() {
  const Function& f = *module_.program().find_entry(kernel_);
  if (f.params.size() != file_.params.size())
    throw UsageError(fmt::format("kernel {} has {} parameter{}, the launch file gives {}", kernel_,
                                 f.params.size(), f.params.size() == 1 ? "" : "s", file_.params.size()));
  std::vector<uint8_t> all(f.param_bytes);
  for (size_t i = 0; i < f.params.size(); ++i) {
    size_t at = 0;
    for (const ParamValue& value : file_.params[i]) {
      std::vector<uint8_t> bytes = value.bytes;
      if (value.kind == ParamValue::Kind::tensor_map) {
        const TensorMapBytes& map = maps_.at(value.name);
        bytes.assign(map.begin(), map.end());
      } else if (value.kind != ParamValue::Kind::bytes) {
        uint64_t pointer = 0;
        if (value.kind == ParamValue::Kind::buffer) {
          pointer = address(value.name) + value.offset_bytes;
        } else {
          const TensorMapBytes& map = maps_.at(value.name);
          pointer = device_.allocate(map.size(), 64);
          device_.copy_in(pointer, map);
        }
        bytes.resize(sizeof pointer);
        std::memcpy(bytes.data(), &pointer, sizeof pointer);
      }
      // A parameter of one value must have its size: a u32 where the kernel reads a u64 is a mistake.
      if (file_.params[i].size() == 1 && !value.at_byte && bytes.size() != f.params[i].bytes)
        throw UsageError(fmt::format("params[{}]: {} bytes, the kernel's parameter has {}", i, bytes.size(),
                                     f.params[i].bytes));
      if (value.at_byte) at = *value.at_byte;
      if (at + bytes.size() > f.params[i].bytes)
        throw UsageError(fmt::format("params[{}]: {} bytes at {} do not fit the parameter's {}", i,
                                     bytes.size(), at, f.params[i].bytes));
      std::memcpy(all.data() + f.params[i].offset + at, bytes.data(), bytes.size());
      at += bytes.size();
    }
  }
  return all;
}

std::vector<uint8_t> LaunchRun::initial(const BufferSpec& b) const {
  using Kind = BufferFill::Kind;
  if (b.fill.kind == Kind::file) return file_bytes(b, b.fill.path);
  std::vector<uint8_t> bytes(b.bytes(), b.fill.kind == Kind::zeros ? 0x00 : 0xff);
  if (b.fill.kind == Kind::zeros || b.fill.kind == Kind::unset) return bytes;
  size_t size = static_cast<size_t>(size_bytes(b.type));
  uint64_t span = static_cast<uint64_t>(b.fill.high - b.fill.low) + 1;
  // Same text, same values: the generator is the one of the fills that validate variants.
  const FillRecipe normal{2, 0, 0};
  for (uint64_t i = 0; i < static_cast<uint64_t>(b.elements()); ++i) {
    double value = 0;
    switch (b.fill.kind) {
      case Kind::iota:
        value = static_cast<double>(i);
        break;
      case Kind::integers:
        value = static_cast<double>(b.fill.low + static_cast<int64_t>(fill_hash(b.fill.seed, i) % span));
        break;
      case Kind::normal:
        value = fill_value(normal, b.fill.seed, i);
        break;
      default:
        value = b.fill.values[i % b.fill.values.size()];
    }
    store_element(b.type, value, bytes.data() + i * size);
  }
  return bytes;
}

LaunchResult LaunchRun::run(const LaunchConfig& how) {
  for (const BufferSpec& b : file_.buffers) device_.copy_in(address(b.name), initial_.at(b.name));
  LaunchConfig config = how;
  config.kernel = kernel_;
  config.grid = file_.grid;
  config.block = file_.block;
  config.cluster = file_.cluster;
  config.preferred_cluster = file_.preferred_cluster;
  config.dynamic_smem_bytes = file_.dynamic_smem_bytes;
  config.sm_count = file_.sm_count;
  config.params = params_;
  return device_.launch(module_, config);
}

std::vector<uint8_t> LaunchRun::bytes(const BufferSpec& b) const {
  std::vector<uint8_t> bytes(b.bytes());
  device_.copy_out(address(b.name), bytes);
  return bytes;
}

std::vector<double> LaunchRun::expected(const BufferSpec& b) const {
  const Expectation& e = b.expect;
  size_t size = static_cast<size_t>(size_bytes(b.type));
  std::vector<double> want(static_cast<size_t>(b.elements()));
  if (e.kind == Expectation::Kind::values) {
    for (size_t i = 0; i < want.size(); ++i) want[i] = e.values[i % e.values.size()];
  } else if (e.kind == Expectation::Kind::file) {
    std::vector<uint8_t> bytes = file_bytes(b, e.path);
    for (size_t i = 0; i < want.size(); ++i) want[i] = load_element(b.type, bytes.data() + i * size);
  } else {
    // From what the operands held before the launch.
    auto operand = [&](const std::string& name) {
      const BufferSpec& spec = buffer(name);
      const std::vector<uint8_t>& bytes = initial_.at(name);
      std::vector<float> values(static_cast<size_t>(spec.elements()));
      size_t step = static_cast<size_t>(size_bytes(spec.type));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(load_element(spec.type, bytes.data() + i * step));
      return values;
    };
    const std::vector<int64_t>&d = b.shape, &a = buffer(e.a).shape;
    if (d.size() != 2 || a.size() != 2 || buffer(e.b).shape.size() != 2)
      throw UsageError(fmt::format("buffer {}: a gemm needs matrices: shapes of two numbers", b.name));
    Problem problem;
    problem.shape = {d[0], d[1], e.a_is_k_major ? a[1] : a[0]};
    problem.cls.a_major = e.a_is_k_major ? Major::k : Major::mn;
    problem.cls.b_major = e.b_is_k_major ? Major::k : Major::mn;
    problem.cls.beta = e.beta != 0;
    auto [m, n, k] = problem.shape;
    std::vector<float> c;
    if (problem.cls.beta) c = operand(e.c);
    std::vector<float> a_values = operand(e.a), b_values = operand(e.b);
    if (static_cast<int64_t>(a_values.size()) != m * k || static_cast<int64_t>(b_values.size()) != n * k ||
        (problem.cls.beta && static_cast<int64_t>(c.size()) != m * n))
      throw UsageError(
          fmt::format("buffer {}: operands of a {} gemm have other sizes", b.name, to_string(problem.shape)));
    Reference reference = reference_gemm(problem, a_values, b_values, c, e.alpha, e.beta);
    want.assign(reference.value.begin(), reference.value.end());
  }
  // Rounded as the buffer's type would hold it.
  std::vector<uint8_t> one(8);
  if (e.tolerance == 0)
    for (double& value : want) {
      store_element(b.type, value, one.data());
      value = load_element(b.type, one.data());
    }
  return want;
}

const std::vector<double>& LaunchRun::expectation(const BufferSpec& b) {
  auto found = expected_.find(b.name);
  if (found == expected_.end()) found = expected_.emplace(b.name, expected(b)).first;
  return found->second;
}

std::vector<BufferCheck> LaunchRun::compare() {
  std::vector<BufferCheck> checks;
  for (const BufferSpec& b : file_.buffers) {
    if (b.expect.kind == Expectation::Kind::none) continue;
    BufferCheck check{b.name, b.elements(), 0, 0, ""};
    std::vector<uint8_t> got = bytes(b);
    const std::vector<double>& want = expectation(b);
    size_t size = static_cast<size_t>(size_bytes(b.type));
    for (size_t i = 0; i < want.size(); ++i) {
      double value = load_element(b.type, got.data() + i * size);
      bool same = value == want[i] || (std::isnan(value) && std::isnan(want[i]));
      double error = same ? 0 : std::fabs(value - want[i]);
      if (std::isnan(error)) error = INFINITY;
      check.max_abs_error = std::max(check.max_abs_error, error);
      if (error <= b.expect.tolerance) continue;
      if (check.mismatches++ == 0)
        check.first_mismatch =
            fmt::format("{}: got {}, want {}", place_text(b, static_cast<int64_t>(i)), value, want[i]);
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace gemmtune::emulator

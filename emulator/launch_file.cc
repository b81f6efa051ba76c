#include "emulator/launch_file.h"

#include <cstring>
#include <type_traits>

#include "emulator/element.h"
#include "emulator/json_node.h"

namespace gemmtune::emulator {
namespace {

using Node = JsonNode;

constexpr uint64_t kMaxBufferBytes = uint64_t{4} << 30;
constexpr size_t kMaxThreads = 1024;

Dim3 dim3(const Node& node, int64_t largest) {
  Dim3 result{1, 1, 1};
  uint32_t* parts[3] = {&result.x, &result.y, &result.z};
  if (node.json().is_number()) {
    result.x = static_cast<uint32_t>(node.integer(1, largest));
    return result;
  }
  node.need_array();
  if (node.json().empty() || node.json().size() > 3) node.fail("expected one to three numbers");
  for (size_t i = 0; i < node.json().size(); ++i)
    *parts[i] = static_cast<uint32_t>(node.at(i).integer(1, largest));
  return result;
}

const std::vector<std::string>& element_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int i = 0; i <= static_cast<int>(ScalarType::e2m1); ++i)
      if (is_element(static_cast<ScalarType>(i))) all.emplace_back(name(static_cast<ScalarType>(i)));
    return all;
  }();
  return names;
}

ScalarType element_type(const Node& node) {
  return *parse_scalar_type(element_names()[node.one_of(element_names())]);
}

BufferFill fill(const Node& node) {
  BufferFill result;
  using Kind = BufferFill::Kind;
  if (node.json().is_string()) {
    constexpr Kind kinds[] = {Kind::zeros, Kind::iota, Kind::integers, Kind::normal, Kind::unset};
    result.kind = kinds[node.one_of({"zeros", "iota", "integers", "normal", "unset"})];
    if (result.kind == Kind::integers) result.low = -2, result.high = 2;
    return result;
  }
  node.need_object({"integers", "normal", "values", "file", "seed"});
  int given = 0;
  if (node.has("integers")) {
    Node range = node.at("integers");
    range.need_array();
    if (range.json().size() != 2) range.fail("expected [lowest, highest]");
    result.kind = Kind::integers;
    result.low = range.at(size_t{0}).integer(-(int64_t{1} << 52), int64_t{1} << 52);
    result.high = range.at(1).integer(result.low, int64_t{1} << 52);
    ++given;
  }
  if (node.has("normal")) {
    if (!node.at("normal").boolean()) node.at("normal").fail("expected true");
    result.kind = Kind::normal, ++given;
  }
  if (node.has("values")) result.kind = Kind::values, result.values = node.at("values").numbers(), ++given;
  if (node.has("file")) result.kind = Kind::file, result.path = node.at("file").text(), ++given;
  if (given != 1) node.fail("expected one of integers, normal, values, file");
  if (node.has("seed")) result.seed = static_cast<uint64_t>(node.at("seed").integer(0, INT64_MAX));
  return result;
}

Expectation expectation(const Node& node) {
  Expectation result;
  using Kind = Expectation::Kind;
  node.need_object({"values", "file", "gemm", "tolerance"});
  int given = 0;
  if (node.has("values")) result.kind = Kind::values, result.values = node.at("values").numbers(), ++given;
  if (node.has("file")) result.kind = Kind::file, result.path = node.at("file").text(), ++given;
  if (node.has("gemm")) {
    Node gemm = node.at("gemm");
    gemm.need_object({"a", "b", "c", "a_major", "b_major", "alpha", "beta"});
    for (const char* key : {"a", "b"})
      if (!gemm.has(key)) gemm.fail(fmt::format("'{}' is missing", key));
    result.kind = Kind::gemm;
    result.a = gemm.at("a").text();
    result.b = gemm.at("b").text();
    if (gemm.has("c")) result.c = gemm.at("c").text();
    if (gemm.has("a_major")) result.a_is_k_major = gemm.at("a_major").one_of({"m", "k"}) == 1;
    if (gemm.has("b_major")) result.b_is_k_major = gemm.at("b_major").one_of({"n", "k"}) == 1;
    if (gemm.has("alpha")) result.alpha = static_cast<float>(gemm.at("alpha").number());
    if (gemm.has("beta")) result.beta = static_cast<float>(gemm.at("beta").number());
    if (result.beta != 0 && result.c.empty()) gemm.fail("beta needs a buffer 'c'");
    ++given;
  }
  if (given != 1) node.fail("expected one of values, file, gemm");
  if (node.has("tolerance")) result.tolerance = node.at("tolerance").number();
  if (!(result.tolerance >= 0)) node.fail("tolerance must not be negative");
  return result;
}

BufferSpec buffer(const std::string& name, const Node& node) {
  node.need_object({"type", "shape", "fill", "expect", "dump"});
  for (const char* key : {"type", "shape"})
    if (!node.has(key)) node.fail(fmt::format("'{}' is missing", key));
  BufferSpec result;
  result.name = name;
  result.type = element_type(node.at("type"));
  Node shape = node.at("shape");
  shape.need_array();
  if (shape.json().empty()) shape.fail("the list is empty");
  uint64_t bytes = static_cast<uint64_t>(size_bytes(result.type));
  for (size_t i = 0; i < shape.json().size(); ++i) {
    result.shape.push_back(shape.at(i).integer(1, int64_t{1} << 32));
    bytes = bytes > kMaxBufferBytes ? bytes : bytes * static_cast<uint64_t>(result.shape.back());
  }
  if (bytes > kMaxBufferBytes) shape.fail("larger than 4 GiB");
  if (node.has("fill")) result.fill = fill(node.at("fill"));
  if (node.has("expect")) result.expect = expectation(node.at("expect"));
  if (node.has("dump")) result.dump = node.at("dump").text();
  return result;
}

const std::vector<std::string> kTensorTypes = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                               "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};

TensorMapEntry tensor_map(const std::string& name, const Node& node, const LaunchFile& launch) {
  node.need_object({"buffer", "type", "dims", "strides_bytes", "box", "element_strides", "swizzle",
                    "interleave", "nan_fill", "offset_bytes"});
  for (const char* key : {"buffer", "dims", "box"})
    if (!node.has(key)) node.fail(fmt::format("'{}' is missing", key));
  TensorMapEntry result;
  result.name = name;
  result.buffer = node.at("buffer").text();
  const BufferSpec* of = nullptr;
  for (const BufferSpec& b : launch.buffers)
    if (b.name == result.buffer) of = &b;
  if (of == nullptr) node.at("buffer").fail(fmt::format("no buffer '{}'", printable(result.buffer)));
  std::string type(emulator::name(of->type));
  if (node.has("type")) {
    type = kTensorTypes[node.at("type").one_of(kTensorTypes)];
  } else if (type == "e4m3" || type == "e5m2" || type == "s8") {
    type = "u8";  // TMA moves bytes
  } else if (type == "s16") {
    type = "u16";
  }
  auto found = std::find(kTensorTypes.begin(), kTensorTypes.end(), type);
  result.map.type = static_cast<TensorType>(found - kTensorTypes.begin());

  auto list = [&](const char* key, auto& out, size_t count, int64_t low, int64_t high) {
    Node values = node.at(key);
    values.need_array();
    if (values.json().size() != count) values.fail(fmt::format("expected {} numbers", count));
    for (size_t i = 0; i < count; ++i)
      out[i] = static_cast<std::remove_reference_t<decltype(out[0])>>(values.at(i).integer(low, high));
  };
  Node dims = node.at("dims");
  dims.need_array();
  size_t rank = dims.json().size();
  if (rank < 1 || rank > 5) dims.fail("expected one to five numbers, the contiguous dimension first");
  result.map.rank = static_cast<uint32_t>(rank);
  list("dims", result.map.dims, rank, 1, int64_t{1} << 32);
  list("box", result.map.box, rank, 1, 256);
  if (node.has("strides_bytes")) {
    list("strides_bytes", result.map.strides_bytes, rank - 1, 0, (int64_t{1} << 40) - 1);
  } else {
    uint64_t stride = static_cast<uint64_t>(element_bits(result.map.type) / 8);
    for (size_t i = 0; i + 1 < rank; ++i) result.map.strides_bytes[i] = stride *= result.map.dims[i];
  }
  if (node.has("element_strides")) list("element_strides", result.map.element_strides, rank, 1, 8);
  if (node.has("swizzle"))
    result.map.swizzle = static_cast<TensorSwizzle>(node.at("swizzle").one_of(
        {"none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B"}));
  if (node.has("interleave"))
    result.map.interleave =
        static_cast<TensorInterleave>(node.at("interleave").one_of({"none", "16B", "32B"}));
  if (node.has("nan_fill")) result.map.nan_fill = node.at("nan_fill").boolean();
  if (node.has("offset_bytes"))
    result.offset_bytes = static_cast<uint64_t>(node.at("offset_bytes").integer(0, int64_t{1} << 40));
  return result;
}

template <class T>
std::vector<uint8_t> raw(T value) {
  std::vector<uint8_t> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<uint8_t> hex_bytes(const Node& node) {
  std::string text = node.text();
  std::vector<uint8_t> bytes;
  auto digit = [&](char c) -> uint8_t {
    if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
    node.fail("expected hexadecimal digits");
  };
  if (text.size() % 2) node.fail("expected two hexadecimal digits a byte");
  for (size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(digit(text[i]) << 4 | digit(text[i + 1])));
  return bytes;
}

ParamValue param_value(const Node& node) {
  node.need_object({"buffer", "tensor_map", "tensor_map_pointer", "offset_bytes", "at_byte", "u8", "s8",
                    "u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64", "bytes"});
  ParamValue result;
  using Kind = ParamValue::Kind;
  int given = 0;
  const std::pair<const char*, Kind> names[] = {{"buffer", Kind::buffer},
                                                {"tensor_map", Kind::tensor_map},
                                                {"tensor_map_pointer", Kind::tensor_map_pointer}};
  for (auto [key, kind] : names)
    if (node.has(key)) result.kind = kind, result.name = node.at(key).text(), ++given;
  for (const char* key : {"u8", "s8", "u16", "s16", "u32", "s32", "f16", "bf16", "f32", "f64"}) {
    if (!node.has(key)) continue;
    ScalarType type = *parse_scalar_type(key);
    double value = node.at(key).number();
    result.bytes.resize(static_cast<size_t>(size_bytes(type)));
    store_element(type, value, result.bytes.data());
    if (is_integer(type) && load_element(type, result.bytes.data()) != value)
      node.at(key).fail("does not fit the type");
    ++given;
  }
  // Beyond what a double holds.
  if (node.has("u64")) {
    if (!node.at("u64").json().is_number_unsigned()) node.at("u64").fail("expected an integer from 0");
    result.bytes = raw(node.at("u64").json().get<uint64_t>()), ++given;
  }
  if (node.has("s64")) result.bytes = raw(node.at("s64").integer(INT64_MIN, INT64_MAX)), ++given;
  if (node.has("bytes")) result.bytes = hex_bytes(node.at("bytes")), ++given;
  if (given != 1)
    node.fail("expected one value: buffer, tensor_map, tensor_map_pointer, u32, f32, bytes ...");
  if (node.has("offset_bytes")) {
    if (result.kind != Kind::buffer) node.at("offset_bytes").fail("only buffers have one");
    result.offset_bytes = static_cast<uint64_t>(node.at("offset_bytes").integer(0, int64_t{1} << 40));
  }
  if (node.has("at_byte")) result.at_byte = static_cast<uint32_t>(node.at("at_byte").integer(0, 32764));
  return result;
}

/// Every name that a parameter or an expectation uses must exist.
void check_names(const LaunchFile& launch, const std::string& source) {
  std::vector<std::string> buffers, maps;
  for (const BufferSpec& b : launch.buffers) buffers.push_back(b.name);
  for (const TensorMapEntry& m : launch.tensor_maps) maps.push_back(m.name);
  auto need = [&](const std::string& where, const std::string& word, const std::vector<std::string>& known,
                  const char* what) {
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw UsageError(fmt::format("{}: {}: no {} '{}'{}", source, where, what, printable(word),
                                   did_you_mean(word, known)));
  };
  for (size_t i = 0; i < launch.params.size(); ++i)
    for (const ParamValue& value : launch.params[i]) {
      bool of_buffer = value.kind == ParamValue::Kind::buffer;
      if (of_buffer || value.kind != ParamValue::Kind::bytes)
        need(fmt::format("params[{}]", i), value.name, of_buffer ? buffers : maps,
             of_buffer ? "buffer" : "tensor map");
    }
  for (const BufferSpec& b : launch.buffers) {
    if (b.expect.kind != Expectation::Kind::gemm) continue;
    for (const std::string& operand : {b.expect.a, b.expect.b, b.expect.c})
      if (!operand.empty()) need("buffers." + printable(b.name) + ".expect.gemm", operand, buffers, "buffer");
  }
}

}  // namespace

int64_t BufferSpec::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

size_t BufferSpec::bytes() const {
  return static_cast<size_t>(elements()) * static_cast<size_t>(size_bytes(type));
}

LaunchFile parse_launch_file(std::string_view text, const std::string& source) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {  // 1e999 is no parse_error
    throw UsageError(fmt::format("{}: not JSON: {}", source, printable(error.what(), 160)));
  }
  Node root(json, source);
  root.need_object({"kernel", "grid", "block", "cluster", "preferred_cluster", "dynamic_smem_bytes",
                    "sm_count", "buffers", "tensor_maps", "params"});
  LaunchFile launch;
  if (root.has("kernel")) launch.kernel = root.at("kernel").text();
  for (const char* key : {"grid", "block", "params"})
    if (!root.has(key)) root.fail(fmt::format("'{}' is missing", key));
  launch.grid = dim3(root.at("grid"), INT32_MAX);
  launch.block = dim3(root.at("block"), kMaxThreads);
  if (root.has("cluster")) launch.cluster = dim3(root.at("cluster"), 16);
  if (root.has("preferred_cluster")) launch.preferred_cluster = dim3(root.at("preferred_cluster"), 16);
  if (root.has("dynamic_smem_bytes"))
    launch.dynamic_smem_bytes = static_cast<uint32_t>(root.at("dynamic_smem_bytes").integer(0, 232448));
  if (root.has("sm_count")) launch.sm_count = static_cast<int>(root.at("sm_count").integer(1, 1024));
  if (root.has("buffers")) {
    Node buffers = root.at("buffers");
    buffers.need_object({});
    for (const auto& [name, value] : buffers.json().items())
      launch.buffers.push_back(buffer(name, buffers.at(name)));
  }
  if (root.has("tensor_maps")) {
    Node maps = root.at("tensor_maps");
    maps.need_object({});
    for (const auto& [name, value] : maps.json().items())
      launch.tensor_maps.push_back(tensor_map(name, maps.at(name), launch));
  }
  Node params = root.at("params");
  params.need_array();
  for (size_t i = 0; i < params.json().size(); ++i) {
    Node param = params.at(i);
    std::vector<ParamValue> values;
    if (param.json().is_array()) {
      for (size_t j = 0; j < param.json().size(); ++j) values.push_back(param_value(param.at(j)));
    } else {
      values.push_back(param_value(param));
    }
    launch.params.push_back(std::move(values));
  }
  check_names(launch, source);
  return launch;
}

}  // namespace gemmtune::emulator

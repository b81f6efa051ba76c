#include "tests/hardware/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace gemmtune::hardware {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), in_(path) {
    if (!in_) throw std::runtime_error("cannot read " + path);
  }

  bool next(std::string& line) {
    if (!std::getline(in_, line)) return false;
    ++number_;
    return true;
  }
  [[noreturn]] void fail(const std::string& message) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", path_, number_, message));
  }

 private:
  std::string path_;
  std::ifstream in_;
  int number_ = 0;
};

std::vector<uint64_t> numbers(const std::string& list) {
  std::vector<uint64_t> out;
  std::istringstream in(list);
  for (std::string item; std::getline(in, item, ',');) out.push_back(std::stoull(item, nullptr, 0));
  return out;
}

template <class Array>
size_t fill(Array& array, const std::string& list, Reader& reader) {
  auto values = numbers(list);
  if (values.size() > array.size()) reader.fail("too many values in " + list);
  for (size_t i = 0; i < values.size(); ++i) array[i] = static_cast<typename Array::value_type>(values[i]);
  return values.size();
}

uint32_t code_of(const std::vector<std::string>& names, const std::string& name, Reader& reader) {
  auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) reader.fail("unknown value '" + name + "'");
  return static_cast<uint32_t>(it - names.begin());
}

Map parse_map(std::istringstream& words, Reader& reader) {
  static const std::vector<std::string> kTypes = {"u8",  "u16", "u32",  "s32",     "u64",  "s64",     "f16",
                                                  "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"};
  Map map;
  words >> map.name;
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    if (equals == std::string::npos) reader.fail("expected key=value, not '" + word + "'");
    std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "at")
      map.at_out = value == "out";
    else if (key == "offset")
      map.offset_bytes = static_cast<uint32_t>(std::stoul(value));
    else if (key == "type")
      map.type = code_of(kTypes, value, reader);
    else if (key == "dims")
      map.rank = static_cast<uint32_t>(fill(map.dims, value, reader));
    else if (key == "strides")
      fill(map.strides_bytes, value, reader);
    else if (key == "box")
      fill(map.box, value, reader);
    else if (key == "steps")
      fill(map.element_strides, value, reader);
    else if (key == "swizzle")
      map.swizzle = code_of({"none", "32", "64", "128"}, value, reader);
    else if (key == "interleave")
      map.interleave = code_of({"none", "16", "32"}, value, reader);
    else if (key == "fill")
      map.nan_fill = value == "nan";
    else
      reader.fail("unknown key '" + key + "' of a map");
  }
  return map;
}

std::array<uint32_t, 3> dimensions(std::istringstream& words) {
  std::array<uint32_t, 3> out{1, 1, 1};
  for (uint32_t& v : out) words >> v;
  for (uint32_t& v : out) v = std::max(1u, v);
  return out;
}

/// The rest of a line that starts with a data set's name and may end in a number: "f16 small 4096".
std::string set_and_number(std::istringstream& words, uint32_t& number) {
  std::string set;
  for (std::string word; words >> word;) {
    if (word.find_first_not_of("0123456789") == std::string::npos && !set.empty())
      number = static_cast<uint32_t>(std::stoul(word));
    else
      set += (set.empty() ? "" : " ") + word;
  }
  return set;
}

void parse_line(Case& c, const std::string& line, Reader& reader) {
  std::istringstream words(line);
  std::string key;
  words >> key;
  if (key == "a" || key == "b" || key == "c") {
    Input input{key, "", 0};
    input.set = set_and_number(words, input.turn);
    data_value(input.set, 0);
    c.inputs.push_back(input);
  } else if (key == "grid") {
    c.grid = dimensions(words);
  } else if (key == "block") {
    c.block = dimensions(words);
  } else if (key == "cluster") {
    c.cluster = dimensions(words);
  } else if (key == "smem") {
    words >> c.smem_bytes;
  } else if (key == "memory") {
    c.memory_set = set_and_number(words, c.memory_bytes);
  } else if (key == "out") {
    words >> c.out_bytes;
    uint32_t none = 0;
    c.out_set = set_and_number(words, none);
  } else if (key == "map") {
    c.maps.push_back(parse_map(words, reader));
  } else if (key == "tolerance") {
    double value;
    for (std::string kind; words >> kind >> value;)
      (kind == "ulp" ? c.tolerance.ulp : kind == "ulp64" ? c.tolerance.ulp64 : c.tolerance.absolute) = value;
  } else if (key == "result") {
    for (std::string name; words >> name;) c.results.push_back(name);
  } else if (!key.empty()) {
    reader.fail("unknown line '" + line + "'");
  }
}

/// Lines up to "end".
std::string parse_text(Reader& reader) {
  std::string text;
  for (std::string line; reader.next(line);) {
    if (line == "end") return text;
    text += line + "\n";
  }
  reader.fail("a text has no end");
}

/// "{o0..o31}" written out.
std::string expanded(std::string line) {
  for (size_t dots; (dots = line.find("..")) != std::string::npos;) {
    size_t from = line.rfind('{', dots) + 1, to = line.find('}', dots);
    size_t digits = line.find_first_of("0123456789", from);
    std::string prefix = line.substr(from, digits - from), list;
    int first = std::stoi(line.substr(digits)), last = std::stoi(line.substr(dots + 2 + prefix.size()));
    for (int i = first; i <= last; ++i) list += fmt::format("{}{}{}", i == first ? "" : ", ", prefix, i);
    line.replace(from, to - from, list);
  }
  return line;
}

/// A body's line, or the shared text that it names.
std::string included(const std::string& line, const std::vector<SharedText>& texts, Reader& reader) {
  size_t at = line.find_first_not_of(' ');
  if (at == std::string::npos || line[at] != '$') return expanded(line) + "\n";
  for (const SharedText& text : texts)
    if (text.name == line.substr(at + 1)) return text.text;
  reader.fail("no text '" + line.substr(at + 1) + "'");
}

Case parse_case(const std::string& name, const std::vector<SharedText>& texts, Reader& reader) {
  Case c;
  c.name = name;
  enum { kHead, kModule, kBody, kExpect } part = kHead;
  for (std::string line; reader.next(line);) {
    if (line == "end") return c;
    if (line == "expect") {
      part = kExpect;
      continue;
    }
    if (part == kExpect) {
      std::istringstream words(line);
      for (std::string word; words >> word;)
        c.expected.push_back(static_cast<uint32_t>(std::stoul(word, nullptr, 16)));
      continue;
    }
    c.lines.push_back(line);
    bool inside = !line.empty() && line[0] == ' ';
    if (line == "ptx" || line == "module")
      part = line == "ptx" ? kBody : kModule;
    else if (inside && (part == kBody || part == kModule))
      (part == kBody ? c.body : c.module_text) += included(line, texts, reader);
    else
      parse_line(c, line, reader);
  }
  reader.fail("case " + name + " has no end");
}

/// Bits in the order of the values.
int64_t ordered(uint32_t bits) { return bits >> 31 ? -int64_t{bits & 0x7fffffff} : int64_t{bits}; }

bool close_f32(uint32_t a, uint32_t b, const Tolerance& tolerance) {
  if (a == b) return true;
  if (tolerance.ulp == 0 && tolerance.absolute == 0) return false;
  float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  double steps = std::abs(static_cast<double>(ordered(a) - ordered(b)));
  return steps <= tolerance.ulp || std::fabs(double{x} - double{y}) <= tolerance.absolute;
}

bool close_f64(const uint32_t* a, const uint32_t* b, const Tolerance& tolerance) {
  uint64_t x = uint64_t{a[1]} << 32 | a[0], y = uint64_t{b[1]} << 32 | b[0];
  if (x == y) return true;
  bool nan_x = std::isnan(std::bit_cast<double>(x)), nan_y = std::isnan(std::bit_cast<double>(y));
  if (nan_x || nan_y || x >> 63 != y >> 63) return nan_x && nan_y;
  return static_cast<double>(std::max(x, y) - std::min(x, y)) <= tolerance.ulp64;
}

std::vector<uint8_t> words_of(const std::string& set, uint32_t bytes) {
  std::vector<uint8_t> out(bytes, 0xff);
  for (uint32_t i = 0; !set.empty() && i < bytes / 4; ++i) {
    uint32_t word = static_cast<uint32_t>(data_value(set, i));
    std::memcpy(out.data() + 4 * i, &word, 4);
  }
  return out;
}

}  // namespace

uint32_t Case::words_per_thread() const {
  uint32_t words = 0;
  for (const std::string& r : results) words += r.size() == 2 && r[0] == 'l' ? 2 : 1;
  return words;
}

uint32_t Case::output_bytes() const {
  return results.empty() ? out_bytes : 4 * words_per_thread() * threads();
}

std::vector<uint8_t> Case::operands() const {
  std::vector<uint8_t> out(std::max<size_t>(32, size_t{32} * threads()), 0);
  for (uint32_t t = 0; t < threads(); ++t)
    for (const Input& input : inputs) {
      // A turned set starts elsewhere and wraps, so that the awkward values meet in many pairs.
      uint64_t v = data_value(input.set, input.turn ? (t + input.turn) % std::max(64u, threads()) : t);
      std::memcpy(out.data() + size_t{32} * t + 8 * static_cast<size_t>(input.name[0] - 'a'), &v, 8);
    }
  return out;
}

std::vector<uint8_t> Case::memory() const { return words_of(memory_set, std::max(16u, memory_bytes)); }
std::vector<uint8_t> Case::initial_output() const { return words_of(out_set, output_bytes()); }

std::string Case::difference(const std::vector<uint32_t>& got) const {
  if (got.size() != expected.size())
    return fmt::format("{} words instead of {}", got.size(), expected.size());
  size_t wrong = 0, first = 0, step = tolerance.ulp64 > 0 ? 2 : 1;
  for (size_t i = 0; i < got.size(); i += step)
    if (!(step == 2 ? close_f64(&got[i], &expected[i], tolerance)
                    : close_f32(got[i], expected[i], tolerance)) &&
        wrong++ == 0)
      first = i;
  if (wrong == 0) return "";
  std::string where = fmt::format("word {}", first);
  if (!results.empty()) {
    uint32_t thread = static_cast<uint32_t>(first) / words_per_thread();
    where += fmt::format(" (thread {}", thread);
    auto bytes = operands();
    for (const Input& input : inputs) {
      uint64_t v;
      std::memcpy(&v, bytes.data() + size_t{32} * thread + 8 * static_cast<size_t>(input.name[0] - 'a'), 8);
      where += fmt::format(", {} = {:#x}", input.name, v);
    }
    where += ")";
  }
  return fmt::format("{} of {} words differ, first {}: {:08x}, recorded {:08x}", wrong, got.size(), where,
                     got[first], expected[first]);
}

CaseFile read_case_file(const std::string& path) {
  Reader reader(path);
  CaseFile file;
  file.name = std::filesystem::path(path).stem();
  std::map<std::string, int> names;
  for (std::string line; reader.next(line);) {
    if (line.rfind("#", 0) == 0 && file.cases.empty())
      file.heading.push_back(line);
    else if (line.rfind("recorded on ", 0) == 0 || line == "not yet recorded")
      file.recorded = line;
    else if (line.rfind("text ", 0) == 0)
      file.texts.push_back({line.substr(5), parse_text(reader)});
    else if (line.rfind("case ", 0) == 0) {
      if (names[line]++) reader.fail("'" + line + "' is there twice");
      file.cases.push_back(parse_case(line.substr(5), file.texts, reader));
    } else if (!line.empty())
      reader.fail("expected a case, not '" + line + "'");
  }
  if (file.recorded.empty()) throw std::runtime_error(path + " does not say where its values come from");
  return file;
}

std::string case_file_text(const CaseFile& file) {
  std::string out;
  for (const std::string& line : file.heading) out += line + "\n";
  out += file.recorded + "\n";
  for (const SharedText& text : file.texts) out += "\ntext " + text.name + "\n" + text.text + "end\n";
  for (const Case& c : file.cases) {
    out += "\ncase " + c.name + "\n";
    for (const std::string& line : c.lines) out += line + "\n";
    out += "expect";
    for (size_t i = 0; i < c.expected.size(); ++i)
      out += fmt::format("{}{:08x}", i % 12 ? " " : "\n  ", c.expected[i]);
    out += "\nend\n";
  }
  return out;
}

std::vector<std::string> case_file_paths(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".case") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace gemmtune::hardware

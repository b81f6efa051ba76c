#include "tests/proof/cubin.h"

#include <elf.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace gemmtune {
namespace {

constexpr int kMachineCuda = 190;  // EM_CUDA

template <class T>
std::optional<T> read_at(const std::string& bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// A section's bytes; empty if there is none of that name.
std::string_view section(const std::string& elf, const Elf64_Ehdr& header, std::string_view name) {
  auto entry = [&](unsigned i) { return read_at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr)); };
  auto names = entry(header.e_shstrndx);
  for (unsigned i = 0; names && i < header.e_shnum; ++i) {
    auto s = entry(i);
    if (!s || names->sh_offset + s->sh_name >= elf.size()) continue;
    if (name != elf.c_str() + names->sh_offset + s->sh_name) continue;
    if (s->sh_offset > elf.size() || elf.size() - s->sh_offset < s->sh_size) return {};
    return std::string_view(elf).substr(s->sh_offset, s->sh_size);
  }
  return {};
}

struct TemporaryFile {
  std::string path = std::filesystem::temp_directory_path() / "gemmtune-cubin-XXXXXX";
  explicit TemporaryFile(const std::string& content) {
    int file = mkstemp(path.data());
    bool written =
        file >= 0 && write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    if (file >= 0) close(file);
    if (!written) throw std::runtime_error("cannot write " + path);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { unlink(path.c_str()); }
};

std::string find_nvdisasm() {
  if (const char* named = getenv("GEMMTUNE_NVDISASM")) return named;
  std::vector<std::string> folders;
  if (const char* home = getenv("CUDA_HOME")) folders.push_back(std::string(home) + "/bin");
  folders.push_back("/usr/local/cuda/bin");
  std::istringstream path(getenv("PATH") ? getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
  for (const std::string& folder : folders)
    if (access((folder + "/nvdisasm").c_str(), X_OK) == 0) return folder + "/nvdisasm";
  return "";
}

}  // namespace

std::string cubin_target(const std::string& cubin) {
  auto header = read_at<Elf64_Ehdr>(cubin, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != kMachineCuda)
    return "";
  // ABI 8 (CUDA 13) has the number in bits 8 to 15, ABI 7 (CUDA 12) in bits 0 to 7. "a" shows in the note
  // alone.
  int number = header->e_flags >> (header->e_ident[EI_ABIVERSION] >= 8 ? 8 : 0) & 0xff;
  std::string from_header = fmt::format("sm_{}", number);
  std::string_view note = section(cubin, *header, ".note.nv.tkinfo");
  constexpr std::string_view kOption = "-arch ";
  size_t at = note.find(kOption);
  if (at == note.npos) return from_header;
  note.remove_prefix(at + kOption.size());
  std::string from_note(note.substr(0, note.find_first_of(std::string_view(" \0", 2))));
  bool agree = from_note.starts_with(from_header) && from_note.size() <= from_header.size() + 1;
  return agree ? from_note : from_header + " by its header, " + from_note + " by its note";
}

const std::string& nvdisasm_path() {
  static const std::string path = find_nvdisasm();
  return path;
}

InstructionCounts count_sass(const std::string& cubin) {
  TemporaryFile file(cubin);
  // The data-flow analysis is for what is not asked here.
  std::string command = fmt::format("'{}' -c --no-dataflow '{}' 2>&1", nvdisasm_path(), file.path);
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw std::runtime_error("cannot start " + nvdisasm_path());
  InstructionCounts counts;
  bool any = false;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe.get())) {
    auto has = [&](const char* text) { return std::strstr(line, text) != nullptr; };
    any |= has(" EXIT");
    counts.mma += has(" UTCHMMA") || has(" HGMMA");
    counts.tma_load += has(" UTMALDG");
    counts.tma_store += has(" UTMASTG");
    counts.commit += has(" UTCBAR");
    counts.mbarrier_wait += has(" SYNCS.PHASECHK") && has(".TRYWAIT");
    counts.tmem_load += has(" LDTM");
    counts.tmem_alloc += has(" UTCATOMSWS") && has(".FIND_AND_SET");
  }
  if (!any) throw std::runtime_error(fmt::format("{} reads no kernel in {}", nvdisasm_path(), file.path));
  return counts;
}

std::string sass_fault(const InstructionCounts& designed, int allocation_waits,
                       const InstructionCounts& sass) {
  std::string fault;
  auto demand = [&](const char* what, int is, int least, int most) {
    if (least <= is && is <= most) return;
    fault += fmt::format("{}{} {}, designed {}", fault.empty() ? "SASS: " : "; ", is, what, least);
    if (least < most) fault += fmt::format(" to {}", most);
  };
  auto equal = [&](const char* what, int InstructionCounts::*count) {
    demand(what, sass.*count, designed.*count, designed.*count);
  };
  equal("UTCHMMA", &InstructionCounts::mma);
  equal("UTMALDG", &InstructionCounts::tma_load);
  equal("UTMASTG", &InstructionCounts::tma_store);
  equal("UTCBAR", &InstructionCounts::commit);
  demand("TRYWAIT", sass.mbarrier_wait, designed.mbarrier_wait + allocation_waits,
         2 * designed.mbarrier_wait + allocation_waits);
  equal("LDTM", &InstructionCounts::tmem_load);
  equal("FIND_AND_SET", &InstructionCounts::tmem_alloc);
  return fault;
}

}  // namespace gemmtune

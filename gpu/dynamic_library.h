// A shared library opened at run time.
#pragma once

#include <string>
#include <vector>

namespace gemmtune {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  /// Tries the paths in order. Empty (false) if none opens; `tried()` says which.
  explicit DynamicLibrary(const std::vector<std::string>& paths);
  DynamicLibrary(DynamicLibrary&&) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&&) noexcept;
  ~DynamicLibrary();

  explicit operator bool() const { return handle_ != nullptr; }
  /// File that was opened, as the loader knows it.
  const std::string& path() const { return path_; }

  /// Null if the library has no such symbol.
  void* symbol(const char* name) const;
  template <class Function>
  bool load(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(symbol(name));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string path_;
};

}  // namespace gemmtune

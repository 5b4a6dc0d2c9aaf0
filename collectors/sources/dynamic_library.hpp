#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

namespace gpumeter {

/// A vendor's library, opened at run time so that one binary serves every machine. Any thread.
class DynamicLibrary {
 public:
  /// `name` is a path, or a file name that the loader looks for. An Error carries the loader's words.
  static Result<DynamicLibrary> open(const std::string& name);

  /// The function of exactly this exported name as a pointer of type `Function`; null if there is none.
  template <class Function>
  Function symbol(const char* name) const noexcept {
    return reinterpret_cast<Function>(find(name));
  }

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  explicit DynamicLibrary(void* handle) : handle_(handle) {}
  void* find(const char* name) const noexcept;

  std::unique_ptr<void, Close> handle_;
};

}  // namespace gpumeter

#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>

#include "base/result.hpp"

namespace gpumeter {

/// A vendor's library, opened at run time so that one binary serves every machine. Any thread.
class DynamicLibrary {
 public:
  /// `name` is a path, or a file name that the loader searches for. The Error is the loader's message.
  static Result<DynamicLibrary> open(const std::string& name) {
    // RTLD_NOW: if a symbol that the library needs is missing, open() fails instead of a later pass.
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return DynamicLibrary(handle);
    const char* const words = dlerror();
    return Error(words != nullptr ? words : name + ": cannot be opened");
  }

  /// The function with exactly this exported name as a pointer of type `Function`; null if there is none.
  template <class Function>
  Function symbol(const char* name) const noexcept {
    return reinterpret_cast<Function>(dlsym(handle_.get(), name));
  }

 private:
  struct Close {
    void operator()(void* handle) const noexcept { dlclose(handle); }
  };
  explicit DynamicLibrary(void* handle) : handle_(handle) {}

  std::unique_ptr<void, Close> handle_;
};

}  // namespace gpumeter

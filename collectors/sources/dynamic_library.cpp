#include "collectors/sources/dynamic_library.hpp"

#include <dlfcn.h>

namespace gpumeter {

// All symbols are bound at once: one that a library misses itself shows here, not in the middle of a pass.
Result<DynamicLibrary> DynamicLibrary::open(const std::string& name) {
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return DynamicLibrary(handle);
  const char* const words = dlerror();
  return Error(words != nullptr ? words : name + ": cannot be opened");
}

void* DynamicLibrary::find(const char* name) const noexcept { return dlsym(handle_.get(), name); }

void DynamicLibrary::Close::operator()(void* handle) const noexcept { dlclose(handle); }

}  // namespace gpumeter

#include "collectors/benchmark/blas/library.hpp"

namespace gpumeter::benchmark::blas {
namespace {

const void* scalar(Type type, int which) noexcept {
  static constexpr double kDouble[] = {0, 1};
  static constexpr float kFloat[] = {0, 1};
  static constexpr std::int32_t kInt[] = {0, 1};
  if (type == Type::fp64) return kDouble + which;
  return type == Type::int8 ? static_cast<const void*>(kInt + which) : kFloat + which;
}

}  // namespace

const void* Library::one(Type type) noexcept { return scalar(type, 1); }
const void* Library::zero(Type type) noexcept { return scalar(type, 0); }

std::optional<double> Library::multiply(Type type, int size, const void* a, const void* b, void* c) {
  if (!good()) return std::nullopt;
  mark(false);
  enqueue(type, size, a, b, c);
  mark(true);
  const float milliseconds = good() ? milliseconds_between_marks() : 0;
  return good() && !refused_ && milliseconds > 0 ? std::optional(static_cast<double>(milliseconds) * 1e-3)
                                                 : std::nullopt;
}

Result<DynamicLibrary> open_any(const std::vector<std::string>& folders,
                                std::initializer_list<const char*> files) {
  std::optional<Error> first;
  for (const char* file : files) {
    for (const std::string& folder : folders) {
      Result<DynamicLibrary> opened = DynamicLibrary::open(folder + "/" + file);
      if (opened) return opened;
    }
    Result<DynamicLibrary> opened = DynamicLibrary::open(file);
    if (opened) return opened;
    if (!first) first = opened.error();
  }
  return *first;
}

}  // namespace gpumeter::benchmark::blas

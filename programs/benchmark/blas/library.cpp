#include "programs/benchmark/blas/library.hpp"

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
  if (!good() || (type == Type::fp8 && !prepare_fp8(size))) return std::nullopt;
  mark(false);
  start(type, size, a, b, c);
  mark(true);
  const float milliseconds = good() ? milliseconds_between_marks() : 0;
  return good() && !refused_ && milliseconds > 0 ? std::optional(static_cast<double>(milliseconds) * 1e-3)
                                                 : std::nullopt;
}

void Library::attach(Result<std::unique_ptr<Lt>> lt, Element fp8) {
  fp8_ = fp8;
  if (lt) {
    lt_ = *std::move(lt);
  } else {
    why_no_lt_ = lt.error().message();
  }
}

bool Library::take(const LtStatus& status) {
  if (status.is_refused) return refuse(status.call + " returned " + std::to_string(status.code)), false;
  return passes(status.code, status.call.c_str());
}

bool Library::prepare_fp8(int size) {
  if (lt_ == nullptr) return refuse(why_no_lt_), false;
  if (lt_memory_.workspace == nullptr) {
    lt_memory_ = {allocate(kLtWorkspace), allocate(sizeof(float))};
    upload(lt_memory_.one, one(Type::fp32), sizeof(float));
  }
  return good() && take(lt_->prepare(size, lt_memory_));
}

void Library::end() {
  for (void* each : {lt_memory_.workspace, lt_memory_.one}) {
    if (each != nullptr) release(each);
  }
  lt_memory_ = {};
}

void Library::start(Type type, int size, const void* a, const void* b, void* c) {
  if (type == Type::fp8) {
    take(lt_->multiply(a, b, c));
  } else {
    enqueue(type, size, a, b, c);
  }
}

Result<std::unique_ptr<Lt>> open_lt(const std::vector<std::string>& folders,
                                    std::initializer_list<const char*> files, const LtDialect& dialect) {
  Result<DynamicLibrary> library = open_any(folders, files);
  if (!library) return library.error();
  auto lt = std::make_unique<Lt>(*std::move(library), dialect);
  if (const auto opened = lt->open(); !opened) return opened.error();
  return Result<std::unique_ptr<Lt>>(std::move(lt));
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

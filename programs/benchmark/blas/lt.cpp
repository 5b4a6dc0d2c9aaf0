#include "programs/benchmark/blas/lt.hpp"

#include <algorithm>
#include <cstring>

#include "programs/benchmark/blas/lt_dialects.hpp"

namespace gpumeter::benchmark::blas {

Result<Done> Lt::open() {
  const std::string prefix = dialect_.prefix;
#define GPUMETER_LT_LOAD(name, type)                         \
  name##_ = library_.symbol<type>((prefix + #name).c_str()); \
  if (name##_ == nullptr) return Error("the library has no " + prefix + #name);
  GPUMETER_LT(GPUMETER_LT_LOAD)
#undef GPUMETER_LT_LOAD
  if (const int code = Create_(&handle_); code != 0)
    return Error(prefix + "Create returned " + std::to_string(code));
  return Done{};
}

LtStatus Lt::prepare(int size, const Memory& memory) {
  if (size == size_) return {};
  size_ = 0;
  memory_ = memory;
  LtStatus done = describe_product();
  if (done.code == 0) done = describe_matrices(size);
  if (done.code == 0) done = choose_algorithm();
  if (done.code == 0) size_ = size;
  done.is_refused = done.code != 0;
  return done;
}

LtStatus Lt::multiply(const void* a, const void* b, void* c) {
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;
  return status("Matmul", Matmul_(handle_, product_, &kOne, a, factors_, b, factors_, &kZero, c, sums_, c,
                                  sums_, found_.bytes.data(), memory_.workspace, kLtWorkspace, nullptr));
}

LtStatus Lt::status(const char* call, int code) const {
  const bool is_refused = std::ranges::find(dialect_.refusals, code) != dialect_.refusals.end();
  return {std::string(dialect_.prefix) + call, code, is_refused};
}

LtStatus Lt::describe_product() {
  if (product_ == nullptr) {
    const int code = MatmulDescCreate_(&product_, dialect_.sums_in_fp32, dialect_.fp32);
    if (code != 0) return status("MatmulDescCreate", code);
  }
  struct Attribute {
    int name;
    const void* value;
    std::size_t bytes;
  };
  const std::int32_t transposed = dialect_.transposed;
  const std::int32_t plain = dialect_.plain;
  for (const Attribute& each : {Attribute{dialect_.transpose_a, &transposed, sizeof transposed},
                                Attribute{dialect_.transpose_b, &plain, sizeof plain},
                                Attribute{dialect_.scale_a, &memory_.one, sizeof memory_.one},
                                Attribute{dialect_.scale_b, &memory_.one, sizeof memory_.one}}) {
    const int code = MatmulDescSetAttribute_(product_, each.name, each.value, each.bytes);
    if (code != 0) return status("MatmulDescSetAttribute", code);
  }
  return {};
}

LtStatus Lt::describe_matrices(int size) {
  const auto n = static_cast<std::uint64_t>(size);
  int code = MatrixLayoutCreate_(&factors_, dialect_.fp8, n, n, size);
  if (code == 0) code = MatrixLayoutCreate_(&sums_, dialect_.fp32, n, n, size);
  return status("MatrixLayoutCreate", code);
}

LtStatus Lt::choose_algorithm() {
  if (preference_ == nullptr) {
    const std::uint64_t most = kLtWorkspace;
    int code = MatmulPreferenceCreate_(&preference_);
    if (code == 0) code = MatmulPreferenceSetAttribute_(preference_, kMostWorkspace, &most, sizeof most);
    if (code != 0) return status("MatmulPreferenceSetAttribute", code);
  }
  int count = 0;
  const int code = MatmulAlgoGetHeuristic_(handle_, product_, factors_, factors_, sums_, sums_, preference_,
                                           1, found_.bytes.data(), &count);
  // No algorithm and no error: hipBLASLt without kernels for this type and device.
  if (code == 0 && count == 0) return status("MatmulAlgoGetHeuristic", dialect_.refusals[0]);
  return status("MatmulAlgoGetHeuristic", code != 0 ? code : state_of_found());
}

int Lt::state_of_found() const {
  int state = 0;  // behind the algorithm and the size of its workspace
  std::memcpy(&state, &found_.bytes[dialect_.algorithm_bytes + sizeof(std::size_t)], sizeof state);
  return state;
}

}  // namespace gpumeter::benchmark::blas

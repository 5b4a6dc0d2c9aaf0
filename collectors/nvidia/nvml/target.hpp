#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/readers/gpm_sampler.hpp"

namespace gpumeter::nvidia {

namespace detail {
template <class Struct>
Struct filled_by(unsigned (*)(nvml::Device, Struct*));
}  // namespace detail

/// The struct that Function(device, &struct) fills.
template <auto Function>
using FilledBy = decltype(detail::filled_by(std::declval<NvmlFunctions&>().*Function));

/// One function's answer in this pass, shared by all rows that need a part of it.
class AnswerBase {
 public:
  virtual ~AnswerBase() = default;
  void begin_pass() noexcept { is_fresh_ = false; }

 protected:
  bool is_fresh_ = false;
};

/// The struct that Function(device, &struct) fills.
template <auto Function>
class Answer final : public AnswerBase {
 public:
  using Struct = FilledBy<Function>;
  explicit Answer(NvmlCaller& caller) : caller_(caller) {}

  /// Calls once a pass. The struct holds only if status_of(result()) is ok.
  const Struct& ask() noexcept {
    if (std::exchange(is_fresh_, true)) return value_;
    call();
    if constexpr (requires { Struct::kFormerVersion; }) {
      const bool is_too_new = !is_former_ && result_ == nvml::kArgumentVersionMismatch;
      is_former_ = is_former_ || is_too_new;
      if (is_too_new) call();
    }
    return value_;
  }
  unsigned result() const noexcept { return result_; }

 private:
  void call() noexcept {
    value_ = Struct{};
    if constexpr (requires { Struct::kFormerVersion; }) {
      if (is_former_) value_.version = Struct::kFormerVersion;
    }
    result_ = caller_.call<Function>(&value_);
  }

  NvmlCaller& caller_;
  Struct value_{};
  unsigned result_ = nvml::kNotReady;
  bool is_former_ = false;  // the library rejects the present version
};

/// The object of NVML's calls: a GPU, or a MIG instance of one. Readers hold references to it, so it does not
/// move while the GPU is open. Lane thread.
class NvmlTarget {
 public:
  explicit NvmlTarget(NvmlCaller of, std::optional<unsigned> instance = std::nullopt)
      : caller(std::move(of)), gpu_instance(instance) {}
  NvmlTarget(const NvmlTarget&) = delete;
  NvmlTarget& operator=(const NvmlTarget&) = delete;

  NvmlCaller caller;
  GpmSampler gpm;
  std::optional<unsigned> gpu_instance;  ///< set for a MIG instance

  /// At attach: returns the one Answer of a function, created by the first call.
  template <auto Function>
  Answer<Function>& answer() {
    for (const std::unique_ptr<AnswerBase>& known : answers_) {
      if (auto* const found = dynamic_cast<Answer<Function>*>(known.get())) return *found;
    }
    auto fresh = std::make_unique<Answer<Function>>(caller);
    Answer<Function>& result = *fresh;
    answers_.push_back(std::move(fresh));
    return result;
  }

  void begin_pass() noexcept {
    gpm.begin_pass();
    for (const std::unique_ptr<AnswerBase>& answer : answers_) answer->begin_pass();
  }

  bool is_lost() const noexcept { return caller.is_lost() || gpm.caller().is_lost(); }
  /// As NvmlCaller::lost_by().
  unsigned lost_by() const noexcept {
    return caller.lost_by() != nvml::kSuccess ? caller.lost_by() : gpm.caller().lost_by();
  }

 private:
  std::vector<std::unique_ptr<AnswerBase>> answers_;
};

}  // namespace gpumeter::nvidia

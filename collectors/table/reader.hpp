#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "collectors/api/sample.hpp"

namespace gpumeter {

/// Reads one value of one device. A row's source returns it at attach. It owns its sources or refers to the
/// device's context, which outlives it. Lane thread.
class Reader {
 public:
  /// The device has no such source.
  Reader() = default;

  /// `read` returns the value in the source's unit. If `read` also has settle(bool), it counts by itself over
  /// observed time: see settle().
  template <class Read>
    requires std::same_as<std::invoke_result_t<Read&>, Sample>
  Reader(Read read)  // NOLINT(google-explicit-constructor): a function that binds returns a lambda
      : body_(std::make_unique<Body<Read>>(std::move(read))) {}

  explicit operator bool() const noexcept { return body_ != nullptr; }

  /// Each pass. May block in the driver; allocates nothing.
  Sample operator()() noexcept { return body_->read(); }

  /// True if settle() must be called at the end of each pass, whether the value was read or not.
  bool settles() const noexcept { return body_->settles(); }

  /// The pass has ended. The count of the pass is kept if the pass was observed. Otherwise the count is
  /// dropped, and Pass::elapsed of the next pass includes this pass's time or is zero.
  void settle(bool is_observed) noexcept { body_->settle(is_observed); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual Sample read() noexcept = 0;
    virtual bool settles() const noexcept = 0;
    virtual void settle(bool is_observed) noexcept = 0;
  };

  template <class Read>
  struct Body final : Base {
    explicit Body(Read given) : call(std::move(given)) {}
    static constexpr bool kSettles = requires(Read& read) { read.settle(true); };

    Sample read() noexcept override { return call(); }
    bool settles() const noexcept override { return kSettles; }
    void settle([[maybe_unused]] bool is_observed) noexcept override {
      if constexpr (kSettles) call.settle(is_observed);
    }

    Read call;
  };

  std::unique_ptr<Base> body_;
};

/// Returns the same value each time: a fact found at attach.
inline Reader constant(double value) {
  return [value] { return Sample::of(value); };
}

/// A reader's own count over observed time, as of the last observed pass and as of the pass under way. T is
/// copyable and has restart(), after which the next reading starts the counting.
template <class T>
class Settled {
 public:
  Settled() = default;
  explicit Settled(T initial) : settled_(std::move(initial)) {}

  /// The count for this pass. A change is kept only if the pass is observed.
  T& current() noexcept {
    if (!std::exchange(is_current_, true)) current_ = settled_;
    return current_;
  }

  /// An observed pass without current() is a gap of this count alone.
  void settle(bool is_observed) noexcept {
    const bool was_read = std::exchange(is_current_, false);
    if (!is_observed) return;
    if (was_read) settled_ = current_;
    if (!was_read) settled_.restart();
  }

 private:
  T settled_{};
  T current_{};
  bool is_current_ = false;
};

/// A reader that keeps its own count: `read` takes the Settled count and returns the total.
template <class T, class Read>
class CountingReader {
 public:
  CountingReader(T initial, Read read) : count_(std::move(initial)), read_(std::move(read)) {}
  Sample operator()() noexcept { return read_(count_); }
  void settle(bool is_observed) noexcept { count_.settle(is_observed); }

 private:
  Settled<T> count_;
  Read read_;
};

}  // namespace gpumeter

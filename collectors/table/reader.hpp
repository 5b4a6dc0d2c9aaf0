#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
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
      : body_(new Body<Read>{{&kCalls<Read>}, std::move(read)}) {}

  explicit operator bool() const noexcept { return body_ != nullptr; }

  /// Each pass. May block in the driver; allocates nothing.
  Sample operator()() noexcept { return body_->calls->read(*body_); }

  /// True if settle() must be called at the end of each pass, whether the value was read or not.
  bool settles() const noexcept { return body_->calls->settle != nullptr; }

  /// The pass has ended. The count of the pass is kept if the pass was observed. Otherwise the count is
  /// dropped, and Pass::elapsed of the next pass includes this pass's time or is zero.
  void settle(bool is_observed) noexcept {
    if (settles()) body_->calls->settle(*body_, is_observed);
  }

 private:
  struct Base;

  /// The functions of one type of reader. Virtual functions would do the same, but there are 180 types: their
  /// names, tables and destructors take 70 kB.
  struct Calls {
    Sample (*read)(Base&) noexcept;
    void (*settle)(Base&, bool is_observed) noexcept;  ///< null: the reader does not count by itself
    void (*destroy)(Base*) noexcept;
  };
  struct Base {
    const Calls* calls;
  };
  template <class Read>
  struct Body : Base {
    Read call;
  };
  struct Destroy {
    void operator()(Base* body) const noexcept { body->calls->destroy(body); }
  };

  template <class Read>
  static Sample read_by(Base& body) noexcept {
    return static_cast<Body<Read>&>(body).call();
  }
  template <class Read>
  static void settle_by(Base& body, bool is_observed) noexcept {
    static_cast<Body<Read>&>(body).call.settle(is_observed);
  }
  template <class Read>
  static void destroy_by(Base* body) noexcept {
    delete static_cast<Body<Read>*>(body);
  }
  /// For all types whose destructor does nothing.
  static void release(Base* body) noexcept { ::operator delete(body); }

  template <class Read>
  static constexpr Calls calls_of() noexcept {
    Calls calls{read_by<Read>, nullptr, release};
    if constexpr (requires(Read& read) { read.settle(true); }) calls.settle = settle_by<Read>;
    constexpr bool kIsPlain =
        std::is_trivially_destructible_v<Read> && alignof(Body<Read>) <= alignof(std::max_align_t);
    if constexpr (!kIsPlain) calls.destroy = destroy_by<Read>;
    return calls;
  }
  template <class Read>
  static constexpr Calls kCalls = calls_of<Read>();

  std::unique_ptr<Base, Destroy> body_;
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

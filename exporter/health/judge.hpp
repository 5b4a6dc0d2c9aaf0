#pragma once

#include <memory>

#include "base/clock.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::health {

/// Judges the devices of a store by the table of conditions. Keeps what the table needs of the past: hold
/// times, windows, the last events. One thread.
class Judge {
 public:
  enum class History : std::uint8_t {
    kept,  ///< judge() is called once a second
    none,  ///< one call: hold times are skipped, windows hold the last value, unseen growth is not judged
  };

  explicit Judge(History history = History::kept);
  ~Judge();
  Judge(Judge&&) noexcept;
  Judge& operator=(Judge&&) noexcept;

  /// Returns the judgement as of `now` (CLOCK_MONOTONIC). The store's mutex is held to copy numbers only.
  Report judge(const Store& store, Nanoseconds now);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumeter::health

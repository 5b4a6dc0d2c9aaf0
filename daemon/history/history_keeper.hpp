#pragma once

#include <functional>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "exporter/history/history.hpp"
#include "exporter/store/store.hpp"
#include "exporter/web/live_answers.hpp"

namespace gpumeter {

/// The thread "history": fills the history once a second, shortly after each full second, and renders what
/// browsers poll. It only reads memory, so it never hangs.
class HistoryKeeper {
 public:
  /// `store` and `clock` must outlive this object. `health` returns the last judgement, or null.
  HistoryKeeper(const Store& store, const Clock& clock, LiveAnswers::Health health)
      : clock_(clock), history_(store, clock), live_(history_, clock, std::move(health)), worker_(clock) {}
  ~HistoryKeeper() { stop(); }
  HistoryKeeper(const HistoryKeeper&) = delete;
  HistoryKeeper& operator=(const HistoryKeeper&) = delete;

  /// The thread records from the time on when `may_begin`, which it calls, returns true.
  Result<Done> start(std::function<bool()> may_begin);
  /// Waits for the turn under way.
  void stop() { worker_.stop(); }

  const History& history() const noexcept { return history_; }
  LiveAnswers& live() noexcept { return live_; }

 private:
  const Clock& clock_;
  History history_;
  LiveAnswers live_;
  bool has_begun_ = false;  // of the thread
  Worker worker_;
};

}  // namespace gpumeter

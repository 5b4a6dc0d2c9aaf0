#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/part.hpp"
#include "exporter/health/report.hpp"
#include "exporter/history/history.hpp"
#include "exporter/web/pages.hpp"

namespace gpumeter {

/// The answers of /api/v1/live and the pictures of /api/v1/stream, shared by all clients. The thread that
/// samples the history renders them, once a second while anybody asks, so that no HTTP thread renders while a
/// scrape waits for it. Any thread.
class LiveAnswers {
 public:
  /// All must outlive this object.
  LiveAnswers(const History& history, const Clock& clock, const Topic<health::Report>& health,
              std::string host = {})
      : history_(history), clock_(clock), health_(health), host_(std::move(host)) {}

  /// The current answer, at most two seconds old. The first request after a pause renders it.
  EncodedText live() { return get(live_); }
  /// The same with the utilisation of the last 300 seconds.
  EncodedText with_sparklines() { return get(sparklines_); }

  /// The current answer as a message of text/event-stream, or null: the next samples make it. Never renders.
  SharedBytes newest_message();

  /// True if the answer is there.
  bool is_ready(bool has_sparklines) const {
    return (has_sparklines ? sparklines_ : live_).current(clock_.monotonic()).has_value();
  }

  /// Renders the answers that somebody asked for in the last 5 s, and drops the others. Called after each
  /// sample of the history.
  void refresh();

 private:
  struct Document {
    const bool has_sparklines;
    const bool is_message = false;           // without gzip
    std::atomic<std::int64_t> asked_at{-1};  // CLOCK_MONOTONIC, nanoseconds
    Mutex rendering{};                       // held by the thread that renders; locked before `mutex`
    mutable Mutex mutex{};
    EncodedText text GPUMETER_GUARDED_BY(mutex) = {};
    Nanoseconds rendered_at GPUMETER_GUARDED_BY(mutex) = {};

    std::optional<EncodedText> current(Nanoseconds now) const;
  };

  EncodedText get(Document& document);
  EncodedText render(Document& document, Nanoseconds now) GPUMETER_REQUIRES(document.rendering);
  void refresh(Document& document, Nanoseconds now);

  const History& history_;
  const Clock& clock_;
  const Topic<health::Report>& health_;
  const std::string host_;
  Document live_{.has_sparklines = false};
  Document sparklines_{.has_sparklines = true};
  Document message_{.has_sparklines = false, .is_message = true};
};

namespace web {
/// Fills the history once a second, shortly after each full second, and renders what browsers poll. Only
/// reads memory.
extern const PartEntry kHistory;
}  // namespace web

}  // namespace gpumeter

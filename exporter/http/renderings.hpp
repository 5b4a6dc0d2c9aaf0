#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "exporter/access/waiting.hpp"
#include "exporter/http/message.hpp"

namespace gpumeter {

/// Renders the answers that take long, so that no HTTP thread waits for them, and each of them at most once a
/// second. Scrapes go first: one thread ("web-scrapes", from the first long page on) renders only scrapers'
/// usual pages, the other ("web-render") everything. Requests for the same page share a rendering; they are
/// paused until it is there. Peers share the places of those that wait, and take turns. Any thread, except
/// where noted.
class Renderings {
 public:
  using Render = std::function<HttpResponse(const HttpRequest&)>;

  /// Renderings that wait, of usual pages and of others: more are refused, those of the peer with the most
  /// first.
  static constexpr std::size_t kMostWaiting = 8;
  /// How long an answer serves further requests.
  static constexpr Nanoseconds kFresh = std::chrono::seconds(1);

  /// `render` must not throw.
  Renderings(const Clock& clock, Render render);
  ~Renderings();

  /// The owner's thread. Returns an Error if the kernel refused a thread.
  Result<Done> start();
  /// Answers all requests that wait, and later ones, with 503. The library cannot stop while one is paused.
  void close();
  /// After close(), on the owner's thread.
  void stop();

  /// Who asks.
  struct Asking {
    void* connection;  ///< identifies the request until it is resumed or released
    std::string peer;  ///< Peer::key
    Rendering kind;    ///< not none
  };
  /// The answer to a request that was resumed; empty if it waited for something else.
  std::optional<HttpResponse> answer_to(void* connection);
  /// Returns the answer, or pauses the request until it is there.
  std::optional<HttpResponse> answer(const HttpRequest& request, const Asking& asking,
                                     const Pausing& pausing);
  /// Resumes a request that need not wait any longer, such as one whose client is gone. Others: no effect.
  void release(void* connection);
  /// The request ended; its address may be used again.
  void forget(void* connection);

 private:
  struct State;
  const std::shared_ptr<State> state_;  ///< shared with the threads
  Worker scrapes_;
  Worker all_;
};

}  // namespace gpumeter

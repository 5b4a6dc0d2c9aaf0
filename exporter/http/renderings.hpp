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

/// Renders the answers that take long on one thread ("web-render"), so that no scrape on an HTTP thread waits
/// for them: scrapes of other pages first, and each page at most once a second. Requests for the same page
/// share a rendering; they are paused until it is there. Peers share the places of those that wait, and take
/// turns. Any thread, except where noted.
class Renderings {
 public:
  using Render = std::function<HttpResponse(const HttpRequest&)>;

  /// Renderings that wait, of pages of metrics and of others: more are refused, those of the peer with the most
  /// first.
  static constexpr std::size_t kMostWaiting = 8;
  /// How long an answer serves further requests.
  static constexpr Nanoseconds kFresh = std::chrono::seconds(1);

  /// `render` must not throw. `scrape_path`: that of the pages of metrics.
  Renderings(const Clock& clock, std::string scrape_path, Render render);
  ~Renderings();

  /// The owner's thread. Returns an Error if the kernel refused the thread.
  Result<Done> start();
  /// Answers all requests that wait, and later ones, with 503. The library cannot stop while one is paused.
  void close();
  /// After close(), on the owner's thread.
  void stop();

  /// Who asks.
  struct Asking {
    void* connection;  ///< identifies the request until it is resumed or released
    std::string peer;  ///< Peer::key
  };
  /// Returns the answer, or pauses the request until it is there; ask again when it is resumed.
  std::optional<HttpResponse> answer(const HttpRequest& request, const Asking& asking,
                                     const Pausing& pausing);
  /// Resumes a request that need not wait any longer, such as one whose client is gone. Others: no effect.
  void release(void* connection);
  /// The request ended; its address may be used again.
  void forget(void* connection);

 private:
  struct State;
  const std::shared_ptr<State> state_;  ///< shared with the thread
  Worker worker_;
};

}  // namespace gpumeter

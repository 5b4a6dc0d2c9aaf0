#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "exporter/access/login_queue.hpp"
#include "exporter/access/waiting.hpp"

namespace gpumeter {

/// Checks passwords by bcrypt on one thread ("web-users"), one at a time, and remembers the results. Requests
/// with the same credentials share one check. Hosts take turns. Any thread, except where noted.
class Logins {
 public:
  static constexpr std::size_t kMostWaiting = LoginQueue::kMost;  ///< the running check excluded

  enum class Verdict : std::uint8_t {
    good,
    bad,
    waits,    ///< the request is paused; ask again when it is resumed
    too_many  ///< the checks that wait are too many, or the server stops
  };

  explicit Logins(const Clock& clock);
  ~Logins();

  /// The owner's thread. Returns an Error if the kernel refused the thread.
  Result<Done> start();
  /// Resumes all requests; those and later ones get a cached verdict or too_many.
  void close();
  /// After close(). Waits for the check under way, at most until `deadline`; returns false if it was left
  /// behind.
  bool stop(Nanoseconds deadline);

  /// Who waits for a result.
  struct Asking {
    void* request;     ///< identifies the request until it is resumed or released
    std::string peer;  ///< Peer::key
  };
  /// Looks up the result, or pauses the request until it is there.
  Verdict check(const std::map<std::string, std::string>& users, const Credentials& credentials,
                const Asking& asking, const Pausing& pausing);
  /// Resumes a request that need not wait any longer, such as one whose client is gone. Others: no effect.
  void release(void* request);
  /// The request ended; its address may be used again.
  void forget(void* request);

  /// Drops what is known of users that are gone or have another hash.
  void retain(const std::map<std::string, std::string>& users);

 private:
  struct State;
  const std::shared_ptr<State> state_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter

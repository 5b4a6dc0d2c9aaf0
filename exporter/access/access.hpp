#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "exporter/access/generation.hpp"
#include "exporter/access/logins.hpp"
#include "exporter/access/rate_limiter.hpp"

namespace gpumeter {

/// The part of a request that decides whether it is answered.
struct Visitor {
  void* request = nullptr;  ///< identifies it, also when it is resumed
  std::optional<std::string_view> authorization =
      {};                   ///< the only header Authorization; nullopt: none, or several
  bool is_resumed = false;  ///< the request was paused before
  std::string peer = {};    ///< Peer::key
};

struct Admission {
  enum class Verdict : std::uint8_t {
    admitted,
    waits,         ///< the request is paused; ask again when it is resumed
    unauthorized,  ///< 401
    too_many,      ///< 429: too many passwords wait for their check
    rate_limited   ///< 429, without the configured headers
  };
  Verdict verdict = Verdict::admitted;
  std::shared_ptr<const WebGeneration> generation = {};  ///< whose headers the answer carries; null: none
};

/// The web configuration in force: what HTTP asks for each connection and each request. Any thread, except
/// where noted.
class WebAccess {
 public:
  /// The rate limit is that of `first` for good, as in exporter-toolkit.
  WebAccess(const Clock& clock, std::shared_ptr<const WebGeneration> first);

  /// Starts the thread "web-users". The owner's thread.
  Result<Done> start() { return logins_.start(); }
  /// Resumes all paused requests, and pauses no more. Call it before the server stops.
  void close() { logins_.close(); }
  /// After close(), on the owner's thread. Returns false if a check outlasts the deadline and is left behind.
  bool stop(Nanoseconds deadline) { return logins_.stop(deadline); }

  /// The generation for a new connection or request. Never null.
  std::shared_ptr<const WebGeneration> current() const GPUMETER_EXCLUDES(mutex_);
  /// Connections keep the generation that they have; requests get the new one.
  void replace(std::shared_ptr<const WebGeneration> wanted) GPUMETER_EXCLUDES(mutex_);

  /// Decides in the order of exporter-toolkit: rate limit, headers, user.
  Admission admit(const Visitor& visitor, const Pausing& pausing);
  /// For a request that is refused whoever sent it: rate limit and headers.
  Admission admit_unseen();
  /// Resumes a request whose client is gone. No effect on others.
  void release(void* request) { logins_.release(request); }
  /// The request ended.
  void forget(void* request) { logins_.forget(request); }

 private:
  Admission::Verdict login(const WebSettings& settings, const Visitor& visitor, const Pausing& pausing);

  mutable Mutex mutex_;
  std::shared_ptr<const WebGeneration> current_ GPUMETER_GUARDED_BY(mutex_);
  RateLimiter limiter_;
  Logins logins_;
};

}  // namespace gpumeter

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/access/waiting.hpp"

namespace gpumeter {

/// Each step of the cost doubles the time of one check. Cost 14 takes about 1 s on a server's core, and at
/// most one check runs at a time, so a higher cost would keep everybody out.
inline constexpr unsigned kMaxBcryptCost = 14;

/// Checks the form of a hash: `$2y$10$` and 53 characters, the letter one of a, b, x, y. Returns its cost, 4
/// to
/// 31. Any thread.
Result<unsigned> bcrypt_cost(std::string_view hash);

/// The hash with which the password of an unknown user is compared, so that the answer takes as long as for a
/// known one. No password may log in with it. `cost` is 4 to 31.
std::string dummy_bcrypt_hash(unsigned cost);

/// Hashes the password and compares in constant time. Takes 50 ms at cost 10. nullopt: memory is short. Any
/// thread.
std::optional<bool> bcrypt_matches(const std::string& password, const std::string& hash);

struct Credentials {
  std::string user;
  std::string password;
};

/// Parses the value of a header Authorization: the scheme Basic (RFC 7617) and canonical base64. Control
/// characters, which bcrypt's C interface would end at, and a missing colon make it invalid.
std::optional<Credentials> parse_basic_credentials(std::string_view header);

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
    too_many,      ///< 429: too many passwords wait for their check, or the server stops
    rate_limited   ///< 429, without the configured headers
  };
  Verdict verdict = Verdict::admitted;
  std::shared_ptr<const WebGeneration> generation = {};  ///< whose headers the answer carries; null: none
};

/// The web configuration in force: what HTTP asks for each connection and each request. Any thread, except
/// where noted.
///
/// Passwords are checked by bcrypt on one thread ("web-users"), one at a time. The last good password of each
/// user and kMostBad bad ones are remembered; bad ones never displace good ones, so guesses cannot slow down
/// users. Requests with the same credentials share a check, and peers take turns.
class WebAccess {
 public:
  static constexpr std::size_t kMostWaiting = 8;  ///< checks that wait, besides the one under way
  static constexpr std::size_t kMostBad = 100;    ///< as exporter-toolkit's cache

  /// The rate limit is that of `first` for good, as in exporter-toolkit.
  WebAccess(const Clock& clock, std::shared_ptr<const WebGeneration> first);
  ~WebAccess() { close(); }

  /// Starts the thread. The owner's thread. Returns an Error if the kernel refused it.
  Result<Done> start();
  /// Resumes all paused requests, and pauses no more. Call it before the server stops.
  void close();
  /// After close(), on the owner's thread. Returns false if a check outlasts the deadline and is left behind.
  bool stop(Nanoseconds deadline) { return worker_.stop(deadline); }

  /// The generation for a new connection or request. Never null.
  std::shared_ptr<const WebGeneration> current() const GPUMETER_EXCLUDES(mutex_);
  /// Connections keep the generation that they have; requests get the new one. Forgets passwords of users
  /// that are gone or have another hash.
  void replace(std::shared_ptr<const WebGeneration> wanted) GPUMETER_EXCLUDES(mutex_);

  /// Decides in the order of exporter-toolkit: rate limit, headers, user.
  Admission admit(const Visitor& visitor, const Pausing& pausing);
  /// For a request that is refused whoever sent it: rate limit and headers.
  Admission admit_unseen();
  /// Resumes a request that need not wait any longer, such as one whose client is gone. No effect on others.
  void release(void* request);
  /// The request ended; its address may be used again.
  void forget(void* request);

 private:
  struct Logins;

  bool take_token() GPUMETER_EXCLUDES(mutex_);
  Admission::Verdict login(const WebSettings& settings, const Visitor& visitor, const Pausing& pausing);

  const Clock& clock_;
  const RateLimit limit_;
  mutable Mutex mutex_;
  std::shared_ptr<const WebGeneration> current_ GPUMETER_GUARDED_BY(mutex_);
  double tokens_ GPUMETER_GUARDED_BY(mutex_);  ///< of the bucket, which is full at the start
  Nanoseconds filled_at_ GPUMETER_GUARDED_BY(mutex_);
  const std::shared_ptr<Logins> logins_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shares.hpp"
#include "exporter/access/login_cache.hpp"

namespace gpumeter {

/// How likely a password is good. Of the checks of one peer, those of a higher rank run first, and displace
/// lower ones from a full queue.
enum class LoginRank : std::uint8_t {
  /// The user does not exist, or has another password that is good. The password is checked all the same, so
  /// that the time of an answer does not tell which users exist.
  surely_bad,
  may_be_good,
  /// As may_be_good, and the same credentials were refused before: users repeat their password, guesses
  /// differ.
  asked_again
};

/// A request that waits for a check.
struct LoginWaiter {
  void* request;
  void (*resume)(void* request) noexcept;
};

/// One check and the requests that wait for it.
struct LoginCheck {
  LoginKey key{};
  Credentials credentials;
  std::string hash;
  std::string peer;  ///< Peer::key of who asked first: a host, or the user of a Unix socket
  LoginRank rank = LoginRank::surely_bad;
  bool is_user = false;  ///< false: compared with the dummy hash, and bad in any case
  std::vector<LoginWaiter> waiters = {};
};

/// The last credentials that were refused because the queue was full, by the start of their keys.
class RefusedKeys {
 public:
  void add(const LoginKey& key);
  bool contains(const LoginKey& key) const;

 private:
  static constexpr std::size_t kMost = 1024;

  std::vector<std::uint64_t> tags_;
  std::size_t next_ = 0;
};

/// The checks that wait, in the order of their arrival. Peers share the places and take turns, so that one of
/// them cannot keep the others out, whatever passwords it sends. Not thread-safe.
class LoginQueue {
 public:
  static constexpr std::size_t kMost = 8;

  /// Null: there is none.
  LoginCheck* find(const LoginKey& key);

  /// The queue must not be full.
  LoginCheck& add(LoginCheck check);
  bool is_full() const noexcept { return checks_.size() >= kMost; }
  /// Removes and returns the check that makes room for one of `peer`: the last one of the lowest rank of the
  /// peer with the most. If no peer has that many more, one of a rank below `rank`, of a peer with at least
  /// as many.
  std::optional<LoginCheck> displace(const std::string& peer, LoginRank rank);

  /// Removes and returns the first check of the highest rank of the peer whose last turn was the longest ago.
  std::optional<LoginCheck> take();

  /// Removes and returns a request, and its check if no other request waits for it.
  std::optional<LoginWaiter> release(void* request);
  /// Removes and returns all requests and checks.
  std::vector<LoginWaiter> clear();

 private:
  LoginCheck remove(const std::deque<LoginCheck>::iterator& check);

  std::deque<LoginCheck> checks_;
  Shares<std::string> shares_;                  ///< of checks_
  std::map<std::string, std::uint64_t> turns_;  ///< of the peers in checks_, and of the last ones
  std::uint64_t turn_ = 0;
};

/// Removes and returns a request from a check that it may wait for.
std::optional<LoginWaiter> release_from(LoginCheck& check, void* request);

}  // namespace gpumeter

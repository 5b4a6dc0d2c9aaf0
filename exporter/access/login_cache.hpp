#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "exporter/access/credentials.hpp"

namespace gpumeter {

/// What identifies a pair of credentials and the hash to compare with, without the password: HMAC-SHA-256
/// under a random key of this process.
using LoginKey = std::array<std::uint8_t, 32>;

/// Results of bcrypt: the last good password of each user, and kMostBad bad ones. Bad ones never displace
/// good ones, so guesses cannot slow down users. Not thread-safe.
class LoginCache {
 public:
  static constexpr std::size_t kMostBad = 100;  // as exporter-toolkit's cache

  LoginCache();

  /// The parts have their lengths in the key: no two different triples have the same bytes (CVE-2022-46146).
  LoginKey key(const Credentials& credentials, const std::string& hash) const;

  /// nullopt: unknown.
  std::optional<bool> find(const std::string& user, const LoginKey& key) const;
  void keep(const std::string& user, const std::string& hash, const LoginKey& key, bool is_good);

  /// True if a good password for this hash is known. Any other one is then bad.
  bool knows(const std::string& user, const std::string& hash) const;

  /// Drops results of users that are gone or have another hash.
  void retain(const std::map<std::string, std::string>& users);

 private:
  struct Good {
    std::string hash;
    LoginKey key;
  };

  std::array<std::uint8_t, 32> secret_{};
  std::map<std::string, Good> good_;
  std::vector<LoginKey> bad_;
  std::minstd_rand random_;
};

}  // namespace gpumeter

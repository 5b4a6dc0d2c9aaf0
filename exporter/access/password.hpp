#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

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

}  // namespace gpumeter

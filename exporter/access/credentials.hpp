#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpumeter {

struct Credentials {
  std::string user;
  std::string password;
};

/// Parses the value of a header Authorization: the scheme Basic (RFC 7617) and canonical base64. Control
/// characters, which bcrypt's C interface would end at, and a missing colon make it invalid.
std::optional<Credentials> parse_basic_credentials(std::string_view header);

}  // namespace gpumeter

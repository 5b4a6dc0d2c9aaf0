#include "config/web/checks.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.hpp"
#include "exporter/access/password.hpp"

namespace gpumeter::config::web {
namespace {

using options::enumerate;
using options::printable;

struct AllowedHeader {
  std::string_view name;
  std::array<std::string_view, 2> values;  ///< empty: any value
};
constexpr AllowedHeader kAllowedHeaders[] = {
    {"Strict-Transport-Security", {}},
    {"X-Content-Type-Options", {"nosniff"}},
    {"X-Frame-Options", {"deny", "sameorigin"}},
    {"X-XSS-Protection", {}},
    {"Content-Security-Policy", {}},
};

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string allowed_names() {
  std::vector<std::string> names;
  for (const AllowedHeader& header : kAllowedHeaders) names.emplace_back(header.name);
  return enumerate(names, "and");
}

}  // namespace

// Go sends whatever the file has. A line end would start a header of the file's choice, so it is rejected.
Complaint check_header(const std::string& name, const std::string& value) {
  const auto* allowed = std::ranges::find(kAllowedHeaders, name, &AllowedHeader::name);
  if (allowed == std::end(kAllowedHeaders)) {
    return "HTTP header " + gpumeter::quoted(printable(name)) + " can not be configured; allowed are " +
           allowed_names();
  }
  if (value.empty() || std::ranges::any_of(value, is_control)) {
    return "invalid value: must be a text of one line, not " + gpumeter::quoted(printable(value));
  }
  const bool is_free = allowed->values.front().empty();
  if (is_free || std::ranges::find(allowed->values, value) != allowed->values.end()) return std::nullopt;
  const auto second = allowed->values[1].empty() ? std::string() : " or " + std::string(allowed->values[1]);
  return "invalid value for this header: must be " + std::string(allowed->values[0]) + second + ", not " +
         gpumeter::quoted(printable(value));
}

Complaint check_user(const std::string& name, const std::string& hash) {
  if (name.find(':') != std::string::npos || std::ranges::any_of(name, is_control)) {
    return "a user's name must have no colon and no control characters: clients cannot send them";
  }
  const Result<unsigned> cost = bcrypt_cost(hash);
  if (!cost) return cost.error().message();
  if (*cost <= kMaxBcryptCost) return std::nullopt;
  return "the bcrypt cost " + std::to_string(*cost) + " is above " + std::to_string(kMaxBcryptCost) +
         ": one login would take seconds of CPU time; hash the password again with a lower cost";
}

}  // namespace gpumeter::config::web

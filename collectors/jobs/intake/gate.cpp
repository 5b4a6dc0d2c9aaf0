#include "collectors/jobs/intake/gate.hpp"

#include <algorithm>

namespace gpumeter::jobs {

std::variant<Guest, Refusal> Gate::admit(const Credentials& who, Nanoseconds sent, Nanoseconds now) {
  std::string name = names_.of(who.uid);
  if (!is_invited(who.uid, name)) return Refusal::user;
  auto identity = identities_.of(who, sent, now);
  if (!identity) return Refusal::identity;
  return Guest{identity->id, std::move(name), std::move(identity->facts)};
}

bool Gate::is_invited(std::uint32_t uid, const std::string& name) const {
  if (users_.empty()) return true;
  const auto is_listed = [this](const std::string& user) {
    return std::find(users_.begin(), users_.end(), user) != users_.end();
  };
  return is_listed(name) || is_listed(std::to_string(uid));
}

}  // namespace gpumeter::jobs

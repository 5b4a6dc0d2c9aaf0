#pragma once

#include <string>
#include <string_view>

#include "base/options.hpp"

/// Checks of the values of a web configuration. Complaints are worded after exporter-toolkit's errors.
namespace gpumeter::config::web {

using options::Complaint;

/// Only five headers may be set, and two of them have fixed values.
Complaint check_header(const std::string& name, const std::string& value);

/// Requires a name that a client can send and a bcrypt hash whose cost is 4 to 14.
Complaint check_user(const std::string& name, const std::string& hash);

}  // namespace gpumeter::config::web

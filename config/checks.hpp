#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/codec.hpp"
#include "config/config.hpp"

/// What a value must be beyond its type; each row of keys.cpp may name one of these.
namespace gpumeter::config {

/// Digits only, as a uid in a list of users.
bool is_number(std::string_view text) noexcept;

/// Other exporters have this key; the complaint explains more than "unknown key" would.
Complaint check_no_web_config(const std::string& file);
Complaint check_addresses(const std::vector<std::string>& addresses);
Complaint check_url_path(const std::string& path);
Complaint check_interval(const Duration& interval);
Complaint check_absolute_path(const std::string& path);
/// Absolute and short enough for a socket's address; empty: no socket.
Complaint check_socket_path(const std::string& path);
/// Octal permissions without set-id and sticky bits.
Complaint check_socket_mode(const std::string& mode);
/// Each `RUN=/absolute/path`, no file twice.
Complaint check_mllog_files(const std::vector<std::string>& files);
/// Numbers of users are uids. The daemon checks whether users with names exist.
Complaint check_users(const std::vector<std::string>& users);
Complaint check_not_zero(const unsigned& number);
Complaint check_retention(const Duration& retention);
Complaint check_device_names(const std::map<std::string, std::string>& names);

}  // namespace gpumeter::config

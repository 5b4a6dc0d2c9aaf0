#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/codec.hpp"
#include "config/config.hpp"

/// Checks of values beyond their types. A row of keys.cpp may name one of them.
namespace gpumeter::config {

/// True for digits only, such as a uid in a list of users.
bool is_number(std::string_view text) noexcept;

/// Requires an absolute path; empty: no file.
Complaint check_optional_path(const std::string& path);
Complaint check_addresses(const std::vector<std::string>& addresses);
Complaint check_url_path(const std::string& path);
Complaint check_interval(const Duration& interval);
Complaint check_absolute_path(const std::string& path);
/// Requires an absolute path that is short enough for a socket's address. Empty: no socket.
Complaint check_socket_path(const std::string& path);
/// Requires octal permissions without set-id and sticky bits.
Complaint check_socket_mode(const std::string& mode);
/// Requires each item as `RUN=/absolute/path`, and no file twice.
Complaint check_mllog_files(const std::vector<std::string>& files);
/// Requires that numbers are uids. The daemon checks whether named users exist.
Complaint check_users(const std::vector<std::string>& users);
Complaint check_percent(const unsigned& percent);
/// Requires names of Kubernetes' labels that remain different as names of Prometheus' labels.
Complaint check_pod_labels(const std::vector<std::string>& labels);
/// Requires numbers of TCP ports.
Complaint check_ports(const std::vector<std::string>& ports);
/// Requires http:// or https://, a host, a port and at most a path, and no target twice.
Complaint check_targets(const std::vector<std::string>& targets);
Complaint check_not_zero(const unsigned& number);
/// Requires the number of a TCP port.
Complaint check_port(const unsigned& port);
Complaint check_nccl_interval(const Duration& interval);
Complaint check_inspector_interval(const Duration& interval);
/// Requires absolute paths, none twice.
Complaint check_dump_prefixes(const std::vector<std::string>& prefixes);
/// Requires MAJOR.MINOR.PATCH that is not below the default.
Complaint check_nccl_version(const std::string& version);
Complaint check_retention(const Duration& retention);
/// Requires a path that Kineto accepts, in ASCII without blanks, = # and "..".
Complaint check_trace_folder(const std::string& path);
Complaint check_own_trace_folder(const std::string& path);
Complaint check_socket_patterns(const std::vector<std::string>& patterns);
/// Requires the same, or no path, and one so short that the clients' sockets fit into it.
Complaint check_kineto_folder(const std::string& path);
Complaint check_trace_time(const Duration& duration);
Complaint check_profile_conditions(const std::vector<std::string>& names);
Complaint check_device_names(const std::map<std::string, std::string>& names);

}  // namespace gpumeter::config

#include "exporter/http/settings.hpp"

#include <algorithm>
#include <set>

#include "base/vsock.hpp"
#include "exporter/listen/socket.hpp"

namespace gpumeter {
namespace {

using options::check_optional_path;
using options::check_socket_path;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

constexpr std::string_view kUnix = "unix:";

Complaint check_unix_address(const std::string& address) {
  const std::string path = address.substr(kUnix.size());
  if (!path.starts_with('/')) {
    return "must have an absolute path after unix:, not \"" + printable(address) + "\"";
  }
  return check_socket_path(path);
}

Complaint check_addresses(const std::vector<std::string>& addresses) {
  if (addresses.empty()) return "must have at least one address, such as \"localhost:10478\"";
  std::set<std::string> seen;
  std::vector<std::string> odd, complaints;
  for (const std::string& address : addresses) {
    if (address.starts_with(kUnix)) {
      if (Complaint complaint = check_unix_address(address)) complaints.push_back(complaint->text);
    } else if (!vsock::parse(address) && !is_host_and_port(address)) {
      odd.push_back(gpumeter::quoted(printable(address)));
    }
    if (!seen.insert(address).second)
      complaints.push_back("must list each address once, not \"" + printable(address) + "\" twice");
  }
  if (!odd.empty()) {
    complaints.push_back(
        "must be host:port, such as localhost:10478, [::1]:10478 or :10478, unix:/path or vsock:CID:PORT, "
        "not " +
        options::enumerate(odd, "or"));
  }
  if (complaints.empty()) return std::nullopt;
  return options::enumerate(complaints, "and");
}

Complaint check_url_path(const std::string& path) {
  const bool plain = std::all_of(path.begin(), path.end(), [](char c) {
    return c > 0x20 && c < 0x7f && std::string_view("?#%\"<>\\^`{|}").find(c) == std::string_view::npos;
  });
  if (!path.starts_with('/') || !plain) {
    return "must be a path such as /metrics, not \"" + printable(path) + "\"";
  }
  if (path.starts_with("/-/") || path.starts_with("/api/")) {
    return "must not begin with /-/ or /api/, which are reserved for other pages";
  }
  return std::nullopt;
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&HttpSettings::listen>("listen", Reload::restart, "Listen addresses, each as host:port, unix:/path or vsock:CID:PORT. `:10478` listens on all addresses, `vsock::10478` on those between a virtual machine and its host. Not used while systemd passes a socket, as in the package: change gpumeter.socket instead. Every user of the machine may connect to a Unix socket.", checked<check_addresses>),
    option<&HttpSettings::config_file>("config_file", Reload::restart, "File with TLS, users, headers and a rate limit, in the format of Prometheus' exporters (docs/web-configuration.md). Changes of its content need no restart. Empty: none.", checked<check_optional_path>),
    option<&HttpSettings::telemetry_path>("telemetry_path", Reload::restart, "Path of the metrics page.", checked<check_url_path>),
    option<&HttpSettings::max_requests>("max_requests", Reload::restart, "Maximum number of concurrent scrapes. A further scrape ends the oldest one that takes long, or is answered 503. 0: no limit."),
};
// clang-format on

}  // namespace

constinit const options::Section kWebSection = options::section("web", kOptions);

}  // namespace gpumeter

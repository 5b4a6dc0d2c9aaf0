#include "config/checks.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.hpp"

namespace gpumeter::config {
namespace {

bool is_port(std::string_view text) noexcept { return parse_number<std::uint16_t>(text).has_value(); }

/// Accepts "localhost", "192.0.2.1", "[::1]", or an empty text for all addresses. bind() detects hosts that
/// do not exist.
bool is_host(std::string_view text) noexcept {
  const bool bracketed = text.starts_with('[') && text.ends_with(']') && text.size() > 2;
  if (bracketed) text = text.substr(1, text.size() - 2);
  return std::none_of(text.begin(), text.end(), [bracketed](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == '/' || c == '[' || c == ']' ||
           (c == ':' && !bracketed);
  });
}

bool is_address(std::string_view text) noexcept {
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && is_port(text.substr(colon + 1)) && is_host(text.substr(0, colon));
}

constexpr std::string_view kUnix = "unix:";

Complaint check_unix_address(const std::string& address) {
  const std::string path = address.substr(kUnix.size());
  if (!path.starts_with('/')) {
    return "must have an absolute path after unix:, not \"" + printable(address) + "\"";
  }
  return check_socket_path(path);
}

/// Accepts the kernel's user numbers; the highest number means no user.
bool is_uid(std::string_view digits) noexcept {
  const bool canonical = digits == "0" || !digits.starts_with('0');
  return canonical && parse_number<std::uint32_t>(digits).value_or(UINT32_MAX) < UINT32_MAX;
}

/// Returns the PCI address of a key in the spelling of the devices; empty for a uuid.
std::string pci_address_of(std::string_view key) {
  constexpr std::string_view kShape = "hh:hh.h";
  if (key.size() < kShape.size()) return {};
  const std::string_view tail = key.substr(key.size() - kShape.size());
  const bool fits = std::equal(tail.begin(), tail.end(), kShape.begin(), [](char c, char shape) {
    return shape == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
  });
  if (!fits) return {};
  std::string address = "0000:" + std::string(tail);
  const std::string_view domain = key.substr(0, key.size() - kShape.size());
  // nvidia-smi prints the domain with eight digits.
  if (domain.size() >= 5) address.replace(0, 5, domain.substr(domain.size() - 5));
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return address;
}

}  // namespace

bool is_number(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Complaint check_addresses(const std::vector<std::string>& addresses) {
  if (addresses.empty()) return "must have at least one address, such as \"localhost:10478\"";
  std::set<std::string> seen;
  for (const std::string& address : addresses) {
    if (address.starts_with(kUnix)) {
      if (Complaint complaint = check_unix_address(address)) return complaint;
    } else if (!is_address(address)) {
      return "must be host:port, such as localhost:10478, [::1]:10478 or :10478, or unix:/path, not \"" +
             printable(address) + "\"";
    }
    if (!seen.insert(address).second) return "must list each address once, not \"" + address + "\" twice";
  }
  return std::nullopt;
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

Complaint check_optional_path(const std::string& path) {
  return path.empty() ? std::nullopt : check_absolute_path(path);
}

Complaint check_interval(const Duration& interval) {
  // Below 10 ms the daemon would do nothing but sample; above 1 h its integrals are meaningless.
  if (interval < std::chrono::milliseconds(10) || interval > std::chrono::hours(1)) {
    return "must be from 10ms to 1h";
  }
  return std::nullopt;
}

Complaint check_absolute_path(const std::string& path) {
  if (path.starts_with('/')) return std::nullopt;
  return "must be a path that begins with /, not \"" + printable(path) + "\"";
}

Complaint check_device_names(const std::map<std::string, std::string>& names) {
  for (const auto& [device, name] : names) {
    if (device.empty() || name.empty())
      return "must map a uuid or PCI address to a name; one of them is empty";
    const std::string address = pci_address_of(device);
    if (!address.empty() && device != address) {
      return "must spell the PCI address as \"" + printable(address) + "\", not \"" + printable(device) +
             "\"";
    }
  }
  return std::nullopt;
}

Complaint check_socket_path(const std::string& path) {
  constexpr std::size_t kLongest = 107;  // sockaddr_un(7): 108 bytes with the NUL
  if (path.empty()) return std::nullopt;
  if (path.size() > kLongest) return "must have at most 107 bytes, as the address of a socket";
  return check_absolute_path(path);
}

Complaint check_socket_mode(const std::string& mode) {
  const bool octal =
      !mode.empty() && std::all_of(mode.begin(), mode.end(), [](char c) { return c >= '0' && c <= '7'; });
  const bool fits = mode.size() == 3 || (mode.size() == 4 && mode.front() == '0');
  if (octal && fits) return std::nullopt;
  return "must be permissions in octal, such as \"0666\" or \"0660\", not \"" + printable(mode) + "\"";
}

Complaint check_mllog_files(const std::vector<std::string>& files) {
  std::set<std::string> seen;
  for (const std::string& file : files) {
    const std::size_t end = file.find("=/");
    if (end == std::string::npos || end == 0) {
      return "must be RUN=/absolute/path, such as \"bert=/var/log/bert/result_0.txt\", not \"" +
             printable(file) + "\"";
    }
    if (!seen.insert(file.substr(end + 1)).second) {
      return "must list each file once, not \"" + printable(file.substr(end + 1)) + "\" twice";
    }
  }
  return std::nullopt;
}

Complaint check_users(const std::vector<std::string>& users) {
  const auto is_wrong = [](const std::string& user) {
    return user.empty() || (is_number(user) && !is_uid(user));
  };
  const auto wrong = std::find_if(users.begin(), users.end(), is_wrong);
  if (wrong == users.end()) return std::nullopt;
  if (wrong->empty()) return "must be names or numbers of users; one of them is empty";
  return "must be names or numbers from 0 to 4294967294, without leading zeros, not \"" + printable(*wrong) +
         "\"";
}

Complaint check_percent(const unsigned& percent) {
  if (percent <= 100) return std::nullopt;
  return "must be a whole number from 0 to 100, not " + std::to_string(percent);
}

Complaint check_pod_labels(const std::vector<std::string>& labels) {
  constexpr std::size_t kMost = 32;
  constexpr std::size_t kLongest = 253 + 1 + 63;  // PREFIX/NAME
  if (labels.size() > kMost) return "must have at most 32 labels";
  std::map<std::string, std::string> exported;
  for (const std::string& label : labels) {
    const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0; };
    const auto is_allowed = [&](unsigned char c) {
      return is_word(c) || (c != 0 && std::strchr("-_./", c) != nullptr);
    };
    if (label.empty() || label.size() > kLongest || !std::all_of(label.begin(), label.end(), is_allowed)) {
      return "must have names of Kubernetes' labels, such as app.kubernetes.io/name, not \"" +
             printable(label) + "\"";
    }
    std::string name = label;
    std::replace_if(
        name.begin(), name.end(), [&](unsigned char c) { return !is_word(c); }, '_');
    if (const auto [other, is_new] = exported.emplace(name, label); !is_new) {
      return "must not have both \"" + printable(other->second) + "\" and \"" + printable(label) +
             "\": both are exported as k8s_label_" + name;
    }
  }
  return std::nullopt;
}

Complaint check_not_zero(const unsigned& number) {
  if (number > 0) return std::nullopt;
  return "must be at least 1; set jobs.enabled to false to ignore all jobs";
}

Complaint check_retention(const Duration& retention) {
  // Two scrapes must see a run's last values. The upper limit keeps at most one day of ended runs on the
  // page.
  if (retention >= std::chrono::seconds(10) && retention <= std::chrono::hours(24)) return std::nullopt;
  return "must be from 10s to 24h";
}

}  // namespace gpumeter::config

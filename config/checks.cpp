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

/// True for "http://host:port", with or without a path.
bool is_page(std::string_view text) {
  const std::size_t scheme = text.starts_with("https://") ? 8 : 7;
  if (scheme == 7 && !text.starts_with("http://")) return false;
  constexpr std::size_t kLongest = 1024;
  const auto is_blank = [](unsigned char c) { return c <= ' ' || c >= 0x7f; };
  if (text.size() > kLongest || std::ranges::any_of(text, is_blank)) return false;
  text.remove_prefix(scheme);
  const std::string_view place = text.substr(0, text.find('/'));
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view host = place.substr(0, colon);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  const bool is_host = is_bracketed || host.find_first_of("[]:?#@") == std::string_view::npos;
  return is_host && parse_number<std::uint16_t>(place.substr(colon + 1)).value_or(0) != 0;
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

Complaint check_ports(const std::vector<std::string>& ports) {
  const auto is_wrong = [](const std::string& port) {
    return port.starts_with('0') || !parse_number<std::uint16_t>(port);
  };
  const auto wrong = std::ranges::find_if(ports, is_wrong);
  if (wrong == ports.end()) return std::nullopt;
  return "must be ports from 1 to 65535, not \"" + printable(*wrong) + "\"";
}

Complaint check_targets(const std::vector<std::string>& targets) {
  std::set<std::string> seen;
  for (const std::string& target : targets) {
    if (!is_page(target)) {
      return "must be addresses with a port, such as \"http://127.0.0.1:8000/metrics\", not \"" +
             printable(target) + "\"";
    }
    if (!seen.insert(target).second)
      return "must list each page once, not \"" + printable(target) + "\" twice";
  }
  return std::nullopt;
}

Complaint check_not_zero(const unsigned& number) {
  if (number > 0) return std::nullopt;
  return "must be at least 1; set jobs.enabled to false to ignore all jobs";
}

Complaint check_port(const unsigned& port) {
  if (port > 0 && port <= UINT16_MAX) return std::nullopt;
  return "must be from 1 to 65535";
}

Complaint check_nccl_interval(const Duration& interval) {
  if (interval >= Nccl::kShortest) return std::nullopt;
  return "must be at least 30s: a query is work for all processes of the job";
}

Complaint check_inspector_interval(const Duration& interval) {
  if (interval >= Nccl::kShortest) return std::nullopt;
  return "must be at least 30s: NCCL Inspector does not write Prometheus files more often";
}

Complaint check_dump_prefixes(const std::vector<std::string>& prefixes) {
  std::set<std::string> seen;
  for (const std::string& prefix : prefixes) {
    if (!prefix.starts_with('/')) {
      return "must have absolute paths, such as \"/var/log/torch/trace_rank_\", not \"" + printable(prefix) +
             "\"";
    }
    if (!seen.insert(prefix).second) {
      return "must list each prefix once, not \"" + printable(prefix) + "\" twice";
    }
  }
  return std::nullopt;
}

Complaint check_nccl_version(const std::string& version) {
  const auto parts = [](std::string_view text) {
    std::vector<unsigned> numbers;
    for (std::string_view rest = text; !rest.empty();) {
      numbers.push_back(parse_number<unsigned>(take_until(rest, '.')).value_or(0));
    }
    return numbers;
  };
  const std::vector<unsigned> numbers = parts(version);
  const bool is_version =
      version.find_first_not_of("0123456789.") == std::string::npos && numbers.size() == 3;
  if (is_version && numbers >= parts(Nccl().oldest)) return std::nullopt;
  return "must be a version from 2.29.2 on, not \"" + printable(version) + "\"";
}

Complaint check_retention(const Duration& retention) {
  // Two scrapes must see a run's last values. The upper limit keeps at most one day of ended runs on the
  // page.
  if (retention >= std::chrono::seconds(10) && retention <= std::chrono::hours(24)) return std::nullopt;
  return "must be from 10s to 24h";
}

Complaint check_trace_folder(const std::string& path) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '=' && c != '#'; };
  constexpr std::size_t kLongest = 256;
  const bool is_valid = path.starts_with('/') && path.size() <= kLongest &&
                        std::all_of(path.begin(), path.end(), is_plain) &&
                        path.find("..") == std::string::npos;
  if (is_valid) return std::nullopt;
  return "must be an absolute path of printable ASCII characters without blanks, = # and .., not \"" +
         printable(path) + "\"";
}

Complaint check_own_trace_folder(const std::string& path) {
  return path.empty() ? std::nullopt : check_trace_folder(path);
}

Complaint check_socket_patterns(const std::vector<std::string>& patterns) {
  const auto wrong =
      std::ranges::find_if(patterns, [](const std::string& each) { return !each.starts_with('/'); });
  if (wrong == patterns.end()) return std::nullopt;
  return "must be absolute paths, not \"" + printable(*wrong) + "\"";
}

Complaint check_kineto_folder(const std::string& path) {
  // Kineto adds "/dynoconfigclient" and a UUID of 36 characters, and does not check the length.
  constexpr std::size_t kLongest = 54;
  if (path.empty()) return std::nullopt;
  if (path.size() > kLongest) return "must have at most 54 bytes, so that the clients' sockets fit";
  return check_trace_folder(path);
}

Complaint check_trace_time(const Duration& duration) {
  if (duration >= std::chrono::milliseconds(1) && duration <= std::chrono::minutes(5)) return std::nullopt;
  return "must be from 1ms to 5m";
}

Complaint check_profile_conditions(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == "thermal_throttling" || name == "slow_steps" || name == "low_mfu") continue;
    return "must have thermal_throttling, slow_steps or low_mfu, not \"" + printable(name) + "\"";
  }
  return std::nullopt;
}

}  // namespace gpumeter::config

#include "collectors/servers/settings.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace gpumeter::servers {

using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

Result<Target> parse_target(std::string_view text) {
  const std::size_t scheme = text.find("://");
  const std::size_t slash = scheme == std::string_view::npos ? scheme : text.find('/', scheme + 3);
  Result<HttpAddress> address = parse_http_address(text.substr(0, slash));
  if (!address) return address.error();
  const std::string_view path = slash == std::string_view::npos ? "" : text.substr(slash);
  return Target{*std::move(address), std::string(path.size() > 1 ? path : "/metrics"), std::string(text)};
}

namespace {

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

/// Requires http:// or https://, a host, a port and at most a path.
Complaint parse_option(const std::string& text, Target& target) {
  Result<Target> parsed = parse_target(text);
  if (!parsed || !is_page(text)) {
    return "must be addresses with a port, such as \"http://127.0.0.1:8000/metrics\", not \"" +
           printable(text) + "\"";
  }
  target = *std::move(parsed);
  return std::nullopt;
}
std::string text_of(const Target& target) { return target.text; }

namespace {

Complaint check_targets(const std::vector<Target>& targets) {
  std::set<std::string> seen;
  for (const Target& target : targets) {
    if (!seen.insert(target.text).second)
      return "must list each page once, not \"" + printable(target.text) + "\" twice";
  }
  return std::nullopt;
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::enabled>("enabled", Reload::restart, "Find model servers (vLLM, SGLang, TGI, Triton, llama.cpp) by the listening ports of processes that use a GPU, and read their metrics pages: `ml_server_*` (docs/model-servers.md)."),
    option<&Settings::ports>("ports", Reload::restart, "Ports that are read if such a process listens there on loopback. The daemon sends `GET /metrics` to them."),
    option<&Settings::processes>("processes", Reload::restart, "Names of processes, such as `[vllm, llama-server]`: only their ports are read. Empty: any."),
    option<&Settings::targets>("targets", Reload::restart, "Metrics pages that are read in any case, such as `http://172.17.0.2:8000/metrics`: of servers in other network namespaces, or without a GPU.", checked<check_targets>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section("servers", kOptions);

}  // namespace gpumeter::servers

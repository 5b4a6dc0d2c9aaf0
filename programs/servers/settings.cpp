#include "programs/servers/settings.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::servers {

using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

Result<Target> parse_target(std::string_view text) {
  const Error wrong("not an address with a port");
  constexpr std::size_t kLongest = 1024;
  const auto is_blank = [](unsigned char c) { return c <= ' ' || c >= 0x7f; };
  if (text.size() > kLongest || std::ranges::any_of(text, is_blank)) return wrong;
  Target target;
  target.text = text;
  target.is_tls = text.starts_with("https://");
  if (!target.is_tls && !text.starts_with("http://")) return wrong;
  text.remove_prefix(text.find("://") + 3);
  const std::size_t slash = std::min(text.find('/'), text.size());
  if (slash + 1 < text.size()) target.path = text.substr(slash);
  const std::string_view place = text.substr(0, slash);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong;
  std::string_view host = place.substr(0, colon);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  if (!is_bracketed && host.find_first_of("[]:?#@") != std::string_view::npos) return wrong;
  target.host = host;
  target.port = place.substr(colon + 1);
  if (parse_number<std::uint16_t>(target.port).value_or(0) == 0) return wrong;
  return target;
}

/// Requires http:// or https://, a host, a port and at most a path.
Complaint parse_option(const std::string& text, Target& target) {
  Result<Target> parsed = parse_target(text);
  if (!parsed) {
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
    option<&Settings::enabled>("enabled", Reload::applies, "Find model servers (vLLM, SGLang, TGI, Triton, llama.cpp) by the listening ports of processes that use a GPU, and read their metrics pages: `ml_server_*` (docs/model-servers.md)."),
    option<&Settings::ports>("ports", Reload::applies, "Ports that are read if such a process listens there on loopback. `gpumeter-servers` sends `GET /metrics` to them."),
    option<&Settings::processes>("processes", Reload::applies, "Names of processes, such as `[vllm, llama-server]`: only their ports are read. Empty: any."),
    option<&Settings::targets>("targets", Reload::applies, "Metrics pages that are read in any case, such as `http://172.17.0.2:8000/metrics`: of servers in other network namespaces, or without a GPU.", checked<check_targets>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section("servers", kOptions);

}  // namespace gpumeter::servers

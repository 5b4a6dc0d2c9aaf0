#include "config/web.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "config/config.hpp"
#include "config/yaml.hpp"
#include "exporter/access/access.hpp"
#include "exporter/tls/context.hpp"

namespace gpumeter::config::web {
namespace {

using options::Complaint;
using options::enumerate;
using options::must_be;
using options::printable;
using options::Problem;

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

/// Only five headers may be set, and two of them have fixed values. Go sends whatever the file has. A line
/// end would start a header of the file's choice, so it is rejected.
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

Complaint check_suite(const std::string&, const std::string& name) {
  if (knows_cipher_suite(name)) return std::nullopt;
  return "unknown cipher: " + printable(name);
}

Complaint check_curve(const std::string&, const std::string& name) {
  if (knows_curve(name)) return std::nullopt;
  return "unknown curve: " + printable(name);
}

/// Requires a name that a client can send and a bcrypt hash whose cost is 4 to 14.
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

struct Unit {
  std::string_view suffix;
  double nanoseconds;
};
// "ms" precedes "m", which would otherwise match its start. Go accepts both of Unicode's signs for micro.
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1e3},
                                         {"\u00b5s", 1e3},
                                         {"\u03bcs", 1e3},
                                         {"ms", 1e6},
                                         {"s", 1e9},
                                         {"m", 60e9},
                                         {"h", 3600e9}}};
constexpr double kMost = 9.1e18;  // int64_t holds 9.22e18 ns, 292 years

bool is_start_of_number(std::string_view text) noexcept {
  return !text.empty() && ((text.front() >= '0' && text.front() <= '9') || text.front() == '.');
}

std::optional<double> take_part(std::string_view& text) noexcept {
  if (!is_start_of_number(text)) return std::nullopt;
  const auto count = take_number<double>(text, std::chars_format::fixed);
  if (!count) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.suffix)) continue;
    text.remove_prefix(unit.suffix.size());
    return *count * unit.nanoseconds;
  }
  return std::nullopt;
}

constexpr EnumNames<ClientAuth, 6> kClientAuthNames = {
    {{ClientAuth::none, "NoClientCert"},
     {ClientAuth::request, "RequestClientCert"},
     {ClientAuth::require_any, "RequireAnyClientCert"},
     {ClientAuth::require_any, "RequireClientCert"},  // the older name
     {ClientAuth::verify_if_given, "VerifyClientCertIfGiven"},
     {ClientAuth::require_verified, "RequireAndVerifyClientCert"}}};

constexpr const char* kPolicies =
    "NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or "
    "RequireAndVerifyClientCert";

/// The values of the file before the checks that relate them.
struct Fields {
  std::string cert, cert_file, key, key_file, client_ca, client_ca_file;
  TlsSettings tls;  ///< without PEM contents
  std::string client_auth_type;
  bool http2 = false;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> users;
  RateLimit rate_limit;
};

Complaint read_version(const Node& node, TlsVersion& version) {
  const auto found = node.kind == Node::Kind::scalar ? kTlsVersionNames.find(node.text) : std::nullopt;
  if (!found) return "unknown TLS version; " + must_be("TLS10, TLS11, TLS12 or TLS13", node).text;
  version = *found;
  return std::nullopt;
}

Complaint read_interval(const Node& node, Nanoseconds& interval) {
  const auto duration = node.kind == Node::Kind::scalar ? parse_go_duration(node.text) : std::nullopt;
  if (!duration || *duration < Nanoseconds(0)) return must_be("a duration such as 100ms, 1s or 1m30s", node);
  interval = *duration;
  return std::nullopt;
}

Complaint read_policy(const Node& node, Fields& fields) {
  if (node.kind == Node::Kind::scalar && node.text.empty()) return std::nullopt;
  const auto policy = node.kind == Node::Kind::scalar ? kClientAuthNames.find(node.text) : std::nullopt;
  if (!policy) return "invalid ClientAuth: " + must_be(kPolicies, node).text;
  fields.client_auth_type = node.text;
  fields.tls.client_auth = *policy;
  return std::nullopt;
}

using Read = Complaint (*)(const Node&, Fields&);
template <auto kMember>
constexpr Read field = [](const Node& node, Fields& fields) { return read(node, fields.*kMember); };
template <auto kMember>
constexpr Read tls_field = [](const Node& node, Fields& fields) { return read(node, fields.tls.*kMember); };
template <auto kMember>
constexpr Read version =
    [](const Node& node, Fields& fields) { return read_version(node, fields.tls.*kMember); };
template <auto kMember>
constexpr Read entry = [](const Node& node, Fields& fields) {
  (fields.*kMember).emplace_back(node.key, node.text);
  return Complaint();
};
template <auto kMember>
constexpr Read item = [](const Node& node, Fields& fields) {
  (fields.tls.*kMember).push_back(node.text);
  return Complaint();
};

struct Row {
  std::string_view section;  ///< empty: the file itself
  std::string_view name;
  Read read;
  Node::Kind kind = Node::Kind::scalar;  ///< of a map or list, `check` and `read` take each text
  Complaint (*check)(const std::string& key, const std::string& text) = nullptr;
};

constexpr std::string_view kTls = "tls_server_config";
constexpr Row kRows[] = {
    {kTls, "cert", field<&Fields::cert>},
    {kTls, "cert_file", field<&Fields::cert_file>},
    {kTls, "key", field<&Fields::key>},
    {kTls, "key_file", field<&Fields::key_file>},
    {kTls, "client_auth_type", read_policy},
    {kTls, "client_ca", field<&Fields::client_ca>},
    {kTls, "client_ca_file", field<&Fields::client_ca_file>},
    {kTls, "client_allowed_sans", item<&TlsSettings::allowed_sans>, Node::Kind::sequence},
    {kTls, "min_version", version<&TlsSettings::min_version>},
    {kTls, "max_version", version<&TlsSettings::max_version>},
    {kTls, "cipher_suites", item<&TlsSettings::cipher_suites>, Node::Kind::sequence, check_suite},
    {kTls, "curve_preferences", item<&TlsSettings::curve_preferences>, Node::Kind::sequence, check_curve},
    {kTls, "prefer_server_cipher_suites", tls_field<&TlsSettings::prefer_server_ciphers>},
    {"http_server_config", "http2", field<&Fields::http2>},
    {"http_server_config", "headers", entry<&Fields::headers>, Node::Kind::map, check_header},
    {"", "basic_auth_users", entry<&Fields::users>, Node::Kind::map, check_user},
    {"rate_limit", "interval",
     [](const Node& node, Fields& fields) { return read_interval(node, fields.rate_limit.interval); }},
    {"rate_limit", "burst",
     [](const Node& node, Fields& fields) { return read(node, fields.rate_limit.burst); }},
};

/// Reads the keys and checks them, also those of a section with problems.
class Loader {
 public:
  explicit Loader(const std::string& file) {
    loaded_.places.file = file;
    loaded_.files = {file};
  }

  Loaded load(std::string_view text) {
    auto parsed = parse_yaml(text);
    if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
      loaded_.problems.push_back({loaded_.places.file, error->line, "", error->text});
    } else {
      read(std::get<Node>(parsed));
      finish();
    }
    std::ranges::stable_sort(loaded_.problems, {}, &Problem::line);
    return std::move(loaded_);
  }

 private:
  void read(const Node& root) {
    if (root.kind == Node::Kind::null) return;
    if (root.kind != Node::Kind::map)
      return report(root, "", "not valid YAML: " + must_be("a map of keys", root).text);
    find_duplicates(root, "");
    for (const Node& child : root.children) read(child, "");
  }

  void read(const Node& node, const std::string& section) {
    for (const Row& row : kRows) {
      if (row.section == section && row.name == node.key) return read_row(node, row);
      if (section.empty() && row.section == node.key) return read_section(node);
    }
    report_unknown(node, section);
  }

  void read_section(const Node& node) {
    loaded_.places.lines[node.key] = {node.line};
    if (node.kind == Node::Kind::null) return;
    if (node.kind != Node::Kind::map) return report(node, node.key, must_be("a map of keys", node).text);
    find_duplicates(node, node.key);
    for (const Node& child : node.children) read(child, node.key);
  }

  void read_row(const Node& node, const Row& row) {
    const std::string path =
        std::string(row.section) + (row.section.empty() ? "" : ".") + std::string(row.name);
    loaded_.places.lines[path] = {node.line};
    if (node.kind == Node::Kind::null) return;
    if (row.kind != Node::Kind::scalar) return read_elements(node, row, path);
    if (const auto complaint = row.read(node, fields_)) report(node, path, complaint->text);
  }

  void read_elements(const Node& node, const Row& row, const std::string& path) {
    const bool is_map = row.kind == Node::Kind::map;
    if (node.kind != row.kind)
      return report(node, path, must_be(is_map ? "a map of texts" : "a list of texts", node).text);
    find_duplicates(node, path);
    for (const Node& child : node.children) {
      std::string text;
      Complaint complaint = options::read(child, text);
      if (!complaint && row.check != nullptr) complaint = row.check(child.key, text);
      if (!complaint) complaint = row.read(child, fields_);
      if (complaint) report(child, is_map ? path + "." + printable(child.key) : path, complaint->text);
    }
  }

  void find_duplicates(const Node& node, const std::string& path) {
    std::set<std::string_view> seen;
    if (node.kind != Node::Kind::map) return;
    for (const Node& child : node.children) {
      if (seen.insert(child.key).second) continue;
      report(child, (path.empty() ? "" : path + ".") + printable(child.key),
             "is set twice; keep one of them");
    }
  }

  void report_unknown(const Node& node, const std::string& section) {
    std::set<std::string> names;
    for (const Row& row : kRows) {
      if (row.section == section) names.emplace(row.name);
      if (section.empty() && !row.section.empty()) names.emplace(row.section);
    }
    const std::vector<std::string> known(names.begin(), names.end());
    const std::string meant = options::nearest(node.key, known);
    report(node, (section.empty() ? "" : section + ".") + printable(node.key),
           "unknown key; " +
               (meant.empty() ? "there are " + enumerate(known, "and") : "did you mean " + meant + "?"));
  }

  void finish() {
    WebSettings& settings = loaded_.settings;
    const bool has_tls = has("cert", fields_.cert, fields_.cert_file) ||
                         has("key", fields_.key, fields_.key_file) || has_client_ca() || has_policy();
    if (has_tls) check_tls();
    settings.headers = std::move(fields_.headers);
    settings.users = {fields_.users.begin(), fields_.users.end()};
    settings.rate_limit = fields_.rate_limit;
    if (loaded_.places.lines.contains(std::string(kTls)) && !has_tls) {
      loaded_.notes.emplace_back("tls_server_config has neither a certificate nor a key: TLS is disabled");
    }
    if (fields_.http2)
      loaded_.notes.emplace_back("http_server_config.http2 has no effect: the server speaks HTTP/1.1");
  }

  bool is_wrong(std::string_view key) const {
    return std::ranges::any_of(loaded_.problems, [&](const Problem& it) { return it.key.starts_with(key); });
  }
  /// True also if the key is there with a wrong value, or misspelled.
  bool has(const std::string& name, const std::string& text, const std::string& file) const {
    return !text.empty() || !file.empty() || is_wrong(std::string(kTls) + "." + name);
  }
  bool has_client_ca() const { return has("client_ca", fields_.client_ca, fields_.client_ca_file); }

  bool has_policy() const { return has("client_auth_type", fields_.client_auth_type, ""); }

  void check_tls() {
    TlsSettings& tls = fields_.tls;
    const std::string section(kTls);
    if (!has("cert", fields_.cert, fields_.cert_file)) report(section, "missing one of cert or cert_file");
    if (!has("key", fields_.key, fields_.key_file)) report(section, "missing one of key or key_file");
    read_material("cert_file", fields_.cert_file, fields_.cert, tls.certificate);
    read_material("key_file", fields_.key_file, fields_.key, tls.key);
    read_material("client_ca_file", fields_.client_ca_file, fields_.client_ca, tls.client_ca);
    if (has_client_ca() && tls.client_auth == ClientAuth::none && !is_wrong(section + ".client_auth_type")) {
      report(section,
             "client CA's have been configured without a Client Auth Policy; set client_auth_type or remove "
             "the CA");
    }
    if (tls.min_version > tls.max_version) report(section + ".max_version", "must not be below min_version");
    if (!is_wrong(section)) loaded_.settings.tls = std::move(tls);
  }

  /// The file has precedence over the text inside the configuration.
  void read_material(const std::string& name, const std::string& file, std::string& text, std::string& pem) {
    if (file.empty()) {
      pem = std::move(text);
      return;
    }
    const std::string path = (std::filesystem::path(loaded_.places.file).parent_path() / file).string();
    loaded_.files.push_back(path);
    Result<std::string> content = read_whole(path);
    if (content && content->size() > kMaxFileBytes) content = Error("is larger than 1 MiB");
    if (content)
      pem = *std::move(content);
    else
      report(std::string(kTls) + "." + name, path + " " + content.error().message());
  }

  void report(const Node& node, const std::string& key, const std::string& text) {
    loaded_.problems.push_back({loaded_.places.file, node.line, key, text});
  }
  void report(const std::string& key, const std::string& text) {
    loaded_.problems.push_back(loaded_.places.problem(key, 0, text));
  }

  Fields fields_;
  Loaded loaded_;
};

}  // namespace

std::optional<Nanoseconds> parse_go_duration(std::string_view text) noexcept {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return Nanoseconds(0);
  if (text.empty()) return std::nullopt;
  double sum = 0;
  while (!text.empty()) {
    const auto part = take_part(text);
    if (!part) return std::nullopt;
    sum += *part;
    if (sum > kMost) return std::nullopt;
  }
  return Nanoseconds(std::llround(is_negative ? -sum : sum));
}

Loaded load_text(std::string_view text, const std::string& file) { return Loader(file).load(text); }

Loaded load_file(const std::string& file) {
  const Result<std::string> text = read_whole(file);
  if (text) return load_text(*text, file);
  return {.problems = {{file, 0, "", text.error().message()}}, .files = {file}};
}

}  // namespace gpumeter::config::web

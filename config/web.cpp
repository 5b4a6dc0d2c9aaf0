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

namespace gpumeter::config::web {
namespace {

using options::Complaint;
using options::enumerate;
using options::must_be;
using options::Places;
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

/// The values of the file before the checks that relate them.
struct Fields {
  std::string cert, cert_file, key, key_file, client_ca, client_ca_file;
  std::string client_auth_type;
  TlsSettings tls;  ///< without PEM contents and client_auth
  bool http2 = false;
  std::vector<std::pair<std::string, std::string>> headers;
  std::vector<std::pair<std::string, std::string>> users;
  RateLimit rate_limit;
};

/// Reads texts whose keys the file chooses.
Complaint read_texts(const Node& node, std::vector<std::pair<std::string, std::string>>& texts) {
  if (node.kind != Node::Kind::map) return must_be("a map of texts", node);
  for (const Node& child : node.children) {
    if (child.kind != Node::Kind::scalar) return "has no text for " + gpumeter::quoted(printable(child.key));
    texts.emplace_back(child.key, child.text);
  }
  return std::nullopt;
}

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

using Read = Complaint (*)(const Node&, Fields&);
template <auto kMember>
constexpr Read field = [](const Node& node, Fields& fields) { return read(node, fields.*kMember); };
template <auto kMember>
constexpr Read texts = [](const Node& node, Fields& fields) { return read_texts(node, fields.*kMember); };
template <auto kMember>
constexpr Read tls_field = [](const Node& node, Fields& fields) { return read(node, fields.tls.*kMember); };
template <auto kMember>
constexpr Read version =
    [](const Node& node, Fields& fields) { return read_version(node, fields.tls.*kMember); };

struct Row {
  std::string_view section;  ///< empty: the file itself
  std::string_view name;
  Read read;
};

constexpr std::string_view kTls = "tls_server_config";
constexpr Row kRows[] = {
    {kTls, "cert", field<&Fields::cert>},
    {kTls, "cert_file", field<&Fields::cert_file>},
    {kTls, "key", field<&Fields::key>},
    {kTls, "key_file", field<&Fields::key_file>},
    {kTls, "client_auth_type", field<&Fields::client_auth_type>},
    {kTls, "client_ca", field<&Fields::client_ca>},
    {kTls, "client_ca_file", field<&Fields::client_ca_file>},
    {kTls, "client_allowed_sans", tls_field<&TlsSettings::allowed_sans>},
    {kTls, "min_version", version<&TlsSettings::min_version>},
    {kTls, "max_version", version<&TlsSettings::max_version>},
    {kTls, "cipher_suites", tls_field<&TlsSettings::cipher_suites>},
    {kTls, "curve_preferences", tls_field<&TlsSettings::curve_preferences>},
    {kTls, "prefer_server_cipher_suites", tls_field<&TlsSettings::prefer_server_ciphers>},
    {"http_server_config", "http2", field<&Fields::http2>},
    {"http_server_config", "headers", texts<&Fields::headers>},
    {"", "basic_auth_users", texts<&Fields::users>},
    {"rate_limit", "interval",
     [](const Node& node, Fields& fields) { return read_interval(node, fields.rate_limit.interval); }},
    {"rate_limit", "burst",
     [](const Node& node, Fields& fields) { return read(node, fields.rate_limit.burst); }},
};

/// Reads the keys, then checks them; stops after the first check that fails.
class Loader {
 public:
  explicit Loader(const std::string& file) : places_{file, {}} { loaded_.files = {file}; }

  Loaded load(std::string_view text) {
    auto parsed = parse_yaml(text);
    if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
      loaded_.problems.push_back({places_.file, error->line, "", error->text});
    } else {
      read(std::get<Node>(parsed));
      check();
    }
    std::ranges::stable_sort(loaded_.problems, {}, &Problem::line);
    return std::move(loaded_);
  }

 private:
  bool is_good() const { return loaded_.problems.empty(); }

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
    places_.lines[node.key] = {node.line};
    if (node.kind == Node::Kind::null) return;
    if (node.kind != Node::Kind::map) return report(node, node.key, must_be("a map of keys", node).text);
    find_duplicates(node, node.key);
    for (const Node& child : node.children) read(child, node.key);
  }

  void read_row(const Node& node, const Row& row) {
    const std::string path =
        std::string(row.section) + (row.section.empty() ? "" : ".") + std::string(row.name);
    places_.lines[path] = {node.line};
    for (const Node& child : node.children) {
      if (!child.key.empty()) places_.lines[path + "." + child.key] = {child.line};
    }
    if (node.kind == Node::Kind::null) return;
    find_duplicates(node, path);
    if (const auto complaint = row.read(node, fields_)) report(node, path, complaint->text);
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

  void check() {
    if (!is_good()) return;
    check_each("http_server_config.headers.", fields_.headers, check_header);
    if (is_good()) check_each("basic_auth_users.", fields_.users, check_user);
    if (is_good() && has_tls()) check_tls();
    WebSettings& settings = loaded_.settings;
    settings.headers = std::move(fields_.headers);
    settings.users = {fields_.users.begin(), fields_.users.end()};
    settings.rate_limit = fields_.rate_limit;
    if (places_.lines.contains(std::string(kTls)) && !settings.tls) {
      loaded_.notes.emplace_back("tls_server_config has neither a certificate nor a key: TLS is disabled");
    }
    if (fields_.http2)
      loaded_.notes.emplace_back("http_server_config.http2 has no effect: the server speaks HTTP/1.1");
  }

  void check_each(const std::string& section, const std::vector<std::pair<std::string, std::string>>& texts,
                  Complaint (*examine)(const std::string&, const std::string&)) {
    for (const auto& [name, value] : texts) {
      if (const Complaint complaint = examine(name, value))
        report(section + printable(name), complaint->text);
    }
  }

  bool has_cert() const { return !fields_.cert.empty() || !fields_.cert_file.empty(); }
  bool has_key() const { return !fields_.key.empty() || !fields_.key_file.empty(); }
  bool has_client_ca() const { return !fields_.client_ca.empty() || !fields_.client_ca_file.empty(); }
  bool has_tls() const {
    return has_cert() || has_key() || has_client_ca() || !fields_.client_auth_type.empty();
  }

  void check_tls() {
    TlsSettings& tls = fields_.tls;
    if (!has_cert()) return report("tls_server_config", "missing one of cert or cert_file");
    if (!has_key()) return report("tls_server_config", "missing one of key or key_file");
    if (!read_material("cert_file", fields_.cert_file, fields_.cert, tls.certificate)) return;
    if (!read_material("key_file", fields_.key_file, fields_.key, tls.key)) return;
    if (!read_material("client_ca_file", fields_.client_ca_file, fields_.client_ca, tls.client_ca)) return;
    if (!read_policy()) return;
    if (has_client_ca() && tls.client_auth == ClientAuth::none) {
      return report("tls_server_config",
                    "client CA's have been configured without a Client Auth Policy; set "
                    "client_auth_type or remove the CA");
    }
    if (tls.min_version > tls.max_version) {
      return report("tls_server_config.max_version", "must not be below min_version");
    }
    loaded_.settings.tls = std::move(tls);
  }

  bool read_policy() {
    const std::string& text = fields_.client_auth_type;
    const auto policy = text.empty() ? ClientAuth::none : kClientAuthNames.find(text);
    if (policy) {
      fields_.tls.client_auth = *policy;
      return true;
    }
    report("tls_server_config.client_auth_type",
           "invalid ClientAuth: " + gpumeter::quoted(printable(text)) +
               "; must be NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or "
               "RequireAndVerifyClientCert");
    return false;
  }

  /// The file has precedence over the text inside the configuration.
  bool read_material(const std::string& name, const std::string& file, std::string& text, std::string& pem) {
    if (file.empty()) {
      pem = std::move(text);
      return true;
    }
    const std::string path = (std::filesystem::path(places_.file).parent_path() / file).string();
    loaded_.files.push_back(path);
    Result<std::string> content = read_whole(path);
    if (content && content->size() > kMaxFileBytes) content = Error("is larger than 1 MiB");
    if (!content) {
      report("tls_server_config." + name, path + " " + content.error().message());
      return false;
    }
    pem = *std::move(content);
    return true;
  }

  void report(const Node& node, const std::string& key, const std::string& text) {
    loaded_.problems.push_back({places_.file, node.line, key, text});
  }
  void report(const std::string& key, const std::string& text) {
    loaded_.problems.push_back(places_.problem(key, 0, text));
  }

  Places places_;  ///< keys by full path; a user and a header by its name below its section
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
  return {.settings = {}, .problems = {{file, 0, "", text.error().message()}}, .notes = {}, .files = {file}};
}

}  // namespace gpumeter::config::web

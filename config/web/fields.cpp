#include "config/web/fields.hpp"

#include <set>

#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "config/suggest.hpp"
#include "config/web/go_duration.hpp"

namespace gpumeter::config::web {
namespace {

using Read = Complaint (*)(const Node&, Fields&);

/// Reads texts into a map or a list of pairs, whose keys the file chooses.
Complaint read_texts(const Node& node, const std::function<void(const Node&)>& add) {
  if (node.kind != Node::Kind::map) return must_be("a map of texts", node);
  for (const Node& child : node.children) {
    if (child.kind != Node::Kind::scalar) return "has no text for " + gpumeter::quoted(printable(child.key));
    add(child);
  }
  return std::nullopt;
}

Complaint read_headers(const Node& node, Fields& fields) {
  return read_texts(node, [&](const Node& child) { fields.headers.emplace_back(child.key, child.text); });
}

Complaint read_users(const Node& node, Fields& fields) {
  return read_texts(node, [&](const Node& child) { fields.users[child.key] = child.text; });
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

template <auto kMember>
constexpr Read field() {
  return [](const Node& node, Fields& fields) { return read(node, fields.*kMember); };
}
template <auto kMember>
constexpr Read tls_field() {
  return [](const Node& node, Fields& fields) { return read(node, fields.tls.*kMember); };
}
template <auto kMember>
constexpr Read version_field() {
  return [](const Node& node, Fields& fields) { return read_version(node, fields.tls.*kMember); };
}

struct Row {
  std::string_view section;  ///< empty: the file itself
  std::string_view name;
  Read read;
};

constexpr std::string_view kTls = "tls_server_config";
constexpr Row kRows[] = {
    {kTls, "cert", field<&Fields::cert>()},
    {kTls, "cert_file", field<&Fields::cert_file>()},
    {kTls, "key", field<&Fields::key>()},
    {kTls, "key_file", field<&Fields::key_file>()},
    {kTls, "client_auth_type", field<&Fields::client_auth_type>()},
    {kTls, "client_ca", field<&Fields::client_ca>()},
    {kTls, "client_ca_file", field<&Fields::client_ca_file>()},
    {kTls, "client_allowed_sans", tls_field<&TlsSettings::allowed_sans>()},
    {kTls, "min_version", version_field<&TlsSettings::min_version>()},
    {kTls, "max_version", version_field<&TlsSettings::max_version>()},
    {kTls, "cipher_suites", tls_field<&TlsSettings::cipher_suites>()},
    {kTls, "curve_preferences", tls_field<&TlsSettings::curve_preferences>()},
    {kTls, "prefer_server_cipher_suites", tls_field<&TlsSettings::prefer_server_ciphers>()},
    {"http_server_config", "http2", field<&Fields::http2>()},
    {"http_server_config", "headers", read_headers},
    {"", "basic_auth_users", read_users},
    {"rate_limit", "interval",
     [](const Node& node, Fields& fields) { return read_interval(node, fields.rate_limit.interval); }},
    {"rate_limit", "burst",
     [](const Node& node, Fields& fields) { return read(node, fields.rate_limit.burst); }},
};

/// Walks the tree once.
class Reader {
 public:
  Reader(const std::string& file, std::vector<Problem>& problems) : problems_(problems) {
    fields_.places.file = file;
  }

  Fields read(const Node& root) {
    if (root.kind != Node::Kind::map) {
      if (root.kind != Node::Kind::null)
        report(root, "", "not valid YAML: " + must_be("a map of keys", root).text);
      return std::move(fields_);
    }
    find_duplicates(root, "");
    for (const Node& child : root.children) read(child, "");
    return std::move(fields_);
  }

 private:
  void read(const Node& node, const std::string& section) {
    for (const Row& row : kRows) {
      if (row.section == section && row.name == node.key) return read_row(node, row);
      if (section.empty() && row.section == node.key) return read_section(node);
    }
    report_unknown(node, section);
  }

  void read_section(const Node& node) {
    fields_.places.lines[node.key] = {node.line};
    fields_.has_tls_section = fields_.has_tls_section || node.key == "tls_server_config";
    if (node.kind == Node::Kind::null) return;
    if (node.kind != Node::Kind::map) return report(node, node.key, must_be("a map of keys", node).text);
    find_duplicates(node, node.key);
    for (const Node& child : node.children) read(child, node.key);
  }

  void read_row(const Node& node, const Row& row) {
    const std::string path =
        std::string(row.section) + (row.section.empty() ? "" : ".") + std::string(row.name);
    fields_.places.lines[path] = {node.line};
    for (const Node& child : node.children) {
      if (!child.key.empty()) fields_.places.lines[path + "." + child.key] = {child.line};
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
    const std::string meant = nearest(node.key, known);
    report(node, (section.empty() ? "" : section + ".") + printable(node.key),
           "unknown key; " +
               (meant.empty() ? "there are " + enumerate(known, "and") : "did you mean " + meant + "?"));
  }

  void report(const Node& node, const std::string& key, const std::string& text) {
    problems_.push_back({fields_.places.file, node.line, key, text});
  }

  Fields fields_;
  std::vector<Problem>& problems_;
};

}  // namespace

Fields read_fields(const Node& root, const std::string& file, std::vector<Problem>& problems) {
  return Reader(file, problems).read(root);
}

}  // namespace gpumeter::config::web

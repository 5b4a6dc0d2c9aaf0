#include "config/web/load.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/enum_names.hpp"
#include "base/text.hpp"
#include "config/read_whole.hpp"
#include "config/web/checks.hpp"
#include "config/web/fields.hpp"
#include "config/yaml_tree.hpp"

namespace gpumeter::config::web {
namespace {

constexpr EnumNames<ClientAuth, 6> kClientAuthNames = {
    {{ClientAuth::none, "NoClientCert"},
     {ClientAuth::request, "RequestClientCert"},
     {ClientAuth::require_any, "RequireAnyClientCert"},
     {ClientAuth::require_any, "RequireClientCert"},  // the older name
     {ClientAuth::verify_if_given, "VerifyClientCertIfGiven"},
     {ClientAuth::require_verified, "RequireAndVerifyClientCert"}}};

/// Turns the fields into settings; stops at the first check that fails.
class Checker {
 public:
  Checker(Fields fields, std::vector<Problem>& problems, std::vector<std::string>& files)
      : fields_(std::move(fields)),
        folder_(std::filesystem::path(fields_.places.file).parent_path()),
        problems_(problems),
        files_(files) {}

  LoadedWeb check() {
    check_headers();
    if (problems_.empty()) check_users();
    if (problems_.empty() && has_tls()) check_tls();
    loaded_.settings.headers = std::move(fields_.headers);
    loaded_.settings.users = std::move(fields_.users);
    loaded_.settings.rate_limit = fields_.rate_limit;
    add_notes();
    return std::move(loaded_);
  }

 private:
  void check_headers() {
    for (const auto& [name, value] : fields_.headers) {
      if (const auto complaint = check_header(name, value)) {
        report("http_server_config.headers." + printable(name), complaint->text);
      }
    }
  }

  void check_users() {
    for (const auto& [name, hash] : fields_.users) {
      if (const auto complaint = check_user(name, hash)) {
        report("basic_auth_users." + printable(name), complaint->text);
      }
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
    const std::string path = (folder_ / file).string();
    files_.push_back(path);
    Result<std::string> content = read_whole(path);
    if (content && content->size() > kMaxFileBytes) content = Error("is larger than 1 MiB");
    if (!content) {
      report("tls_server_config." + name, path + " " + content.error().message());
      return false;
    }
    pem = *std::move(content);
    return true;
  }

  void add_notes() {
    if (fields_.has_tls_section && !loaded_.settings.tls) {
      loaded_.notes.emplace_back("tls_server_config has neither a certificate nor a key: TLS is disabled");
    }
    if (fields_.http2)
      loaded_.notes.emplace_back("http_server_config.http2 has no effect: the server speaks HTTP/1.1");
  }

  void report(const std::string& key, const std::string& text) {
    problems_.push_back(fields_.places.problem(key, 0, text));
  }

  Fields fields_;
  const std::filesystem::path folder_;
  std::vector<Problem>& problems_;
  std::vector<std::string>& files_;
  LoadedWeb loaded_;
};

}  // namespace

Loaded load_text(std::string_view text, const std::string& file, std::vector<std::string>* files) {
  std::vector<std::string> read = {file};
  std::vector<Problem> problems;
  auto parsed = parse_yaml(text);
  LoadedWeb loaded;
  if (const auto* error = std::get_if<SyntaxError>(&parsed)) {
    problems.push_back({file, error->line, "", error->text});
  } else {
    Fields fields = read_fields(std::get<Node>(parsed), file, problems);
    if (problems.empty()) loaded = Checker(std::move(fields), problems, read).check();
  }
  if (files != nullptr) *files = std::move(read);
  if (problems.empty()) return loaded;
  std::ranges::stable_sort(problems, {}, &Problem::line);
  return problems;
}

Loaded load_file(const std::string& file, std::vector<std::string>* files) {
  if (files != nullptr) *files = {file};
  const Result<std::string> text = read_whole(file);
  if (!text) return std::vector<Problem>{{file, 0, "", text.error().message()}};
  return load_text(*text, file, files);
}

}  // namespace gpumeter::config::web

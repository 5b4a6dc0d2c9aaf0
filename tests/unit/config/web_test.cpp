#include "config/web.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

namespace gpumeter::config::web {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHash = "$2y$10$2UXri9cIDdgeKjBo4Rlpx.U3ZLDV8X1IxKmsfOvhcM5oXQt/mLmXq";

/// A folder with a certificate, a key and a CA, whose contents the loader does not check.
class WebLoad : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gpumeter-web-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    for (const char* file : {"server.crt", "server.key", "ca.pem"}) write(file, file);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  std::string file() const { return (folder_ / "web.yml").string(); }

  /// The problems, with the folder cut off.
  std::string problems(const std::string& text) {
    const Loaded loaded = load_text(text, file());
    std::string lines;
    for (const options::Problem& problem : loaded.problems) lines += to_string(problem) + "\n";
    for (std::size_t at = 0; (at = lines.find(folder_.string() + "/")) != std::string::npos;) {
      lines.erase(at, folder_.string().size() + 1);
    }
    return lines;
  }
  WebSettings settings(const std::string& text) {
    const Loaded loaded = load_text(text, file());
    EXPECT_TRUE(loaded.problems.empty()) << problems(text);
    files_ = loaded.files;
    notes_ = loaded.notes;
    return loaded.settings;
  }

  fs::path folder_;
  std::vector<std::string> files_;
  std::vector<std::string> notes_;
};

TEST_F(WebLoad, ReadsEveryKey) {
  WebSettings wanted;
  wanted.tls = TlsSettings{.certificate = "server.crt",
                           .key = "server.key",
                           .client_ca = "ca.pem",
                           .client_auth = ClientAuth::require_verified,
                           .allowed_sans = {"one", "two"},
                           .min_version = TlsVersion::tls11,
                           .max_version = TlsVersion::tls12,
                           .cipher_suites = {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"},
                           .curve_preferences = {"CurveP521"},
                           .prefer_server_ciphers = false};
  wanted.headers = {{"X-Frame-Options", "deny"}, {"X-XSS-Protection", "1"}};
  wanted.users = {{"dave", kHash}};
  wanted.rate_limit = {std::chrono::milliseconds(1500), 20};
  EXPECT_EQ(settings("tls_server_config:\n"
                     "  cert_file: server.crt\n"
                     "  cert: \"the file wins\"\n"
                     "  key_file: server.key\n"
                     "  client_ca_file: " +
                     (folder_ / "ca.pem").string() +
                     "\n"
                     "  client_auth_type: RequireAndVerifyClientCert\n"
                     "  client_allowed_sans: [one, two]\n"
                     "  min_version: TLS11\n"
                     "  max_version: TLS12\n"
                     "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]\n"
                     "  curve_preferences: [CurveP521]\n"
                     "  prefer_server_cipher_suites: false\n"
                     "http_server_config:\n"
                     "  http2: false\n"
                     "  headers: {X-Frame-Options: deny, X-XSS-Protection: 1}\n"
                     "basic_auth_users: {dave: " +
                     std::string(kHash) +
                     "}\n"
                     "rate_limit: {interval: 1.5s, burst: 20}\n"),
            wanted);
  EXPECT_EQ(files_, (std::vector<std::string>{file(), folder_ / "server.crt", folder_ / "server.key",
                                              folder_ / "ca.pem"}));
  EXPECT_EQ(notes_, std::vector<std::string>());
}

TEST_F(WebLoad, AcceptsInlineMaterialAndEmptySections) {
  const WebSettings inline_pem = settings("tls_server_config:\n  cert: |\n    C\n    D\n  key: K\n");
  ASSERT_TRUE(inline_pem.tls);
  EXPECT_EQ(inline_pem.tls->certificate, "C\nD\n");
  EXPECT_EQ(inline_pem.tls->key, "K");
  EXPECT_EQ(files_, std::vector<std::string>{file()});
  for (const char* text :
       {"", "tls_server_config:\n", "http_server_config:\nbasic_auth_users:\nrate_limit:\n"}) {
    EXPECT_EQ(settings(text), WebSettings()) << text;
  }
}

TEST_F(WebLoad, NotesSettingsWithoutEffect) {
  EXPECT_EQ(settings("tls_server_config: {min_version: TLS13}\nhttp_server_config: {http2: true}\n"),
            WebSettings());
  EXPECT_EQ(notes_, (std::vector<std::string>{
                        "tls_server_config has neither a certificate nor a key: TLS is disabled",
                        "http_server_config.http2 has no effect: the server speaks HTTP/1.1"}));
}

TEST_F(WebLoad, NamesFileLineAndKey) {
  EXPECT_TRUE(problems("a: [\n").starts_with("web.yml:")) << problems("a: [\n");
  EXPECT_NE(problems("a: [\n").find(": not valid YAML: "), std::string::npos);
  EXPECT_EQ(problems("junk\nmore junk\n"),
            "web.yml:1: not valid YAML: must be a map of keys, not \"junk more junk\"\n");
  EXPECT_EQ(problems("tls_server_config:\n  cert_filse: server.crt\n  key_file: server.key\n  key_file: "
                     "server.key\nusers: {}\n"),
            "web.yml:2: tls_server_config.cert_filse: unknown key; did you mean cert_file?\n"
            "web.yml:4: tls_server_config.key_file: is set twice; keep one of them\n"
            "web.yml:5: users: unknown key; there are basic_auth_users, http_server_config, rate_limit and "
            "tls_server_config\n");
  EXPECT_EQ(problems("http_server_config:\n  headers:\n    X-Frame-Options: [deny]\nrate_limit: {interval: "
                     "5, burst: x}"),
            "web.yml:3: http_server_config.headers.X-Frame-Options: must be a text, not a list\n"
            "web.yml:4: rate_limit.interval: must be a duration such as 100ms, 1s or 1m30s, not \"5\"\n"
            "web.yml:4: rate_limit.burst: must be a whole number from 0 to 1000000, not \"x\"\n");
  EXPECT_EQ(problems("rate_limit: {interval: -1s}"),
            "web.yml:1: rate_limit.interval: must be a duration such as 100ms, 1s or 1m30s, not \"-1s\"\n");
  EXPECT_EQ(problems("basic_auth_users:\n  dave: " + std::string(kHash) + "\n  dave: " + kHash),
            "web.yml:3: basic_auth_users.dave: is set twice; keep one of them\n");
}

TEST_F(WebLoad, ChecksHeaders) {
  EXPECT_EQ(
      problems("http_server_config:\n  headers:\n    Content-Type: foo\n    X-Frame-Options: sameorigin\n"),
      "web.yml:3: http_server_config.headers.Content-Type: HTTP header \"Content-Type\" can not be "
      "configured; "
      "allowed are Strict-Transport-Security, X-Content-Type-Options, X-Frame-Options, X-XSS-Protection and "
      "Content-Security-Policy\n");
  EXPECT_EQ(
      problems("http_server_config:\n  headers:\n    X-Content-Type-Options: sniff\n"),
      "web.yml:3: http_server_config.headers.X-Content-Type-Options: invalid value for this header: must be "
      "nosniff, not \"sniff\"\n");
  // A line end in a value would begin a header of its own.
  EXPECT_EQ(problems("http_server_config:\n  headers:\n    X-XSS-Protection: \"1\\r\\nSet-Cookie: a\"\n"),
            "web.yml:3: http_server_config.headers.X-XSS-Protection: invalid value: must be a text of one "
            "line, not "
            "\"1??Set-Cookie: a\"\n");
}

TEST_F(WebLoad, ChecksUsers) {
  const auto problem = [&](const std::string& name, const std::string& hash) {
    return problems("basic_auth_users: {\"" + name + "\": \"" + hash + "\"}");
  };
  std::string hash = kHash;
  EXPECT_EQ(problem("dave", hash), "");
  EXPECT_EQ(problem("john", "doe"),
            "web.yml:1: basic_auth_users.john: hashedSecret too short to be a bcrypted password\n");
  EXPECT_EQ(
      problem("a:b", hash),
      "web.yml:1: basic_auth_users.a:b: a user's name must have no colon and no control characters: clients "
      "cannot send them\n");
  EXPECT_EQ(problem("dave", hash.replace(4, 2, "14")), "");
  EXPECT_EQ(
      problem("dave", hash.replace(4, 2, "15")),
      "web.yml:1: basic_auth_users.dave: the bcrypt cost 15 is above 14: one login would take seconds of CPU "
      "time; hash the password again with a lower cost\n");
  for (const char* cost : {"03", "32", "4x"}) {
    EXPECT_EQ(problem("dave", hash.replace(4, 2, cost)),
              "web.yml:1: basic_auth_users.dave: the bcrypt cost must be from 04 to 31\n");
  }
}

TEST_F(WebLoad, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(problems("tls_server_config:\n"
                     "  cert_file: none.crt\n"
                     "  key_file: [server.key]\n"
                     "  client_auth_type: Sometimes\n"
                     "  min_version: 1.2\n"
                     "  cipher_suites:\n"
                     "    - TLS_AES_128_GCM_SHA256\n"
                     "    - TLS_RSA_WITH_RC4_128_SHA\n"
                     "  curve_preferences: CurveP256\n"
                     "  prefer_server_cipher_suites: \"true\"\n"
                     "http_server_config:\n"
                     "  http2: 1\n"
                     "  headers:\n"
                     "    X-Frame-Options: allow\n"
                     "    Server: gpus\n"
                     "basic_auth_users:\n"
                     "  dave: secret\n"
                     "  erin:\n"
                     "rate_limit:\n"
                     "  burst: \"5\"\n"
                     "  intervall: 1s\n"),
            "web.yml:2: tls_server_config.cert_file: none.crt cannot be read: No such file or directory\n"
            "web.yml:3: tls_server_config.key_file: must be a text, not a list\n"
            "web.yml:4: tls_server_config.client_auth_type: invalid ClientAuth: must be NoClientCert, "
            "RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or "
            "RequireAndVerifyClientCert, not \"Sometimes\"\n"
            "web.yml:5: tls_server_config.min_version: unknown TLS version; must be TLS10, TLS11, TLS12 or "
            "TLS13, not \"1.2\"\n"
            "web.yml:8: tls_server_config.cipher_suites: unknown cipher: TLS_RSA_WITH_RC4_128_SHA\n"
            "web.yml:9: tls_server_config.curve_preferences: must be a list of texts, not \"CurveP256\"\n"
            "web.yml:10: tls_server_config.prefer_server_cipher_suites: must be true or false, not the text "
            "\"true\"\n"
            "web.yml:12: http_server_config.http2: must be true or false, not \"1\"\n"
            "web.yml:14: http_server_config.headers.X-Frame-Options: invalid value for this header: must be "
            "deny or sameorigin, not \"allow\"\n"
            "web.yml:15: http_server_config.headers.Server: HTTP header \"Server\" can not be configured; "
            "allowed are Strict-Transport-Security, X-Content-Type-Options, X-Frame-Options, "
            "X-XSS-Protection and Content-Security-Policy\n"
            "web.yml:17: basic_auth_users.dave: hashedSecret too short to be a bcrypted password\n"
            "web.yml:18: basic_auth_users.erin: must be a text, not empty\n"
            "web.yml:20: rate_limit.burst: must be a whole number from 0 to 1000000, not the text \"5\"\n"
            "web.yml:21: rate_limit.intervall: unknown key; did you mean interval?\n");
}

TEST_F(WebLoad, ChecksTheKeysOfTlsTogether) {
  const auto problem = [&](const std::string& keys) { return problems("tls_server_config: {" + keys + "}"); };
  EXPECT_EQ(problem("cert_file: '', key_file: '', client_auth_type: NoClientCert"),
            "web.yml:1: tls_server_config: missing one of cert or cert_file\n"
            "web.yml:1: tls_server_config: missing one of key or key_file\n");
  EXPECT_EQ(
      problem("cert_file: none, key_file: none, client_ca_file: none"),
      "web.yml:1: tls_server_config.cert_file: none cannot be read: No such file or directory\n"
      "web.yml:1: tls_server_config.key_file: none cannot be read: No such file or directory\n"
      "web.yml:1: tls_server_config.client_ca_file: none cannot be read: No such file or directory\n"
      "web.yml:1: tls_server_config: client CA's have been configured without a Client Auth Policy; set "
      "client_auth_type or remove the CA\n");
  EXPECT_EQ(problem("cert_file: ., key_file: server.key, min_version: TLS13, max_version: TLS12"),
            "web.yml:1: tls_server_config.cert_file: . cannot be read: Is a directory\n"
            "web.yml:1: tls_server_config.max_version: must not be below min_version\n");
}

TEST_F(WebLoad, ReportsAMissingFile) {
  const Loaded loaded = load_file(file());
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(to_string(loaded.problems.front()), file() + ": cannot be read: No such file or directory");
  EXPECT_EQ(loaded.files, std::vector<std::string>{file()});
}

// Values of Go's own test of time.ParseDuration.
TEST(GoDuration, AcceptsWhatGoAccepts) {
  const std::pair<std::string_view, std::int64_t> cases[] = {{"0", 0},
                                                             {"-0", 0},
                                                             {"5s", 5'000'000'000},
                                                             {"+5s", 5'000'000'000},
                                                             {"-5s", -5'000'000'000},
                                                             {"5.6s", 5'600'000'000},
                                                             {".5s", 500'000'000},
                                                             {"1.s", 1'000'000'000},
                                                             {"10ns", 10},
                                                             {"11us", 11'000},
                                                             {"12\u00b5s", 12'000},
                                                             {"12\u03bcs", 12'000},
                                                             {"13ms", 13'000'000},
                                                             {"3h30m", 12'600'000'000'000},
                                                             {"4m10.5s", 250'500'000'000},
                                                             {"1h1m1s1ms1us1ns", 3'661'001'001'001}};
  for (const auto& [text, nanoseconds] : cases) {
    EXPECT_EQ(parse_go_duration(text), Nanoseconds(nanoseconds)) << text;
  }
}

TEST(GoDuration, RejectsWhatGoRejects) {
  for (const std::string_view text : {"", "3", "-", "s", ".", "-.", ".s", "+.s", "1d", "1 s", " 1s", "1s ",
                                      "1e3s", "inf", "1sm", "3000000h"}) {
    EXPECT_EQ(parse_go_duration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpumeter::config::web

#include <gnutls/gnutls.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "base/descriptor.hpp"
#include "exporter/access/access.hpp"
#include "exporter/http/server.hpp"
#include "exporter/listen/socket.hpp"
#include "exporter/store/store.hpp"
#include "exporter/tls/context.hpp"
#include "tests/unit/exporter/tls/pki.hpp"

namespace gpumeter {
namespace {

/// A client that verifies nothing.
class TlsPeer {
 public:
  explicit TlsPeer(const Endpoint& endpoint) : socket_(::socket(endpoint.address.ss_family, SOCK_STREAM, 0)) {
    EXPECT_EQ(
        connect(socket_.number(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length), 0);
    gnutls_certificate_credentials_t credentials = nullptr;
    gnutls_certificate_allocate_credentials(&credentials);
    credentials_.reset(credentials);
    gnutls_session_t session = nullptr;
    gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
    session_.reset(session);
    gnutls_set_default_priority(session);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, socket_.number());
    code_ = gnutls_handshake(session);
  }

  bool is_connected() const { return code_ == 0; }
  /// The status line, or what ended the connection.
  std::string get(const std::string& path) {
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
    gnutls_record_send(session_.get(), request.data(), request.size());
    std::string answer;
    while (!is_complete(answer)) {
      char bytes[4096];
      const ssize_t got = gnutls_record_recv(session_.get(), bytes, sizeof bytes);
      if (got <= 0) return got == 0 ? "end of file" : gnutls_strerror(static_cast<int>(got));
      answer.append(bytes, static_cast<std::size_t>(got));
    }
    return answer.substr(0, answer.find("\r\n"));
  }
  std::time_t not_after() const { return gnutls_certificate_expiration_time_peers(session_.get()); }

 private:
  static bool is_complete(const std::string& answer) {
    const std::size_t length = answer.find("Content-Length: ");
    const std::size_t headers = answer.find("\r\n\r\n");
    if (headers == std::string::npos || length == std::string::npos) return false;
    return answer.size() == headers + 4 + std::stoul(answer.substr(length + 16));
  }

  Descriptor socket_;
  GnutlsCredentials credentials_;
  GnutlsSession session_;
  int code_ = 0;
};

std::shared_ptr<const WebGeneration> generation(TlsSettings settings) {
  auto context = TlsContext::make(settings);
  EXPECT_TRUE(context) << context.error().message();
  WebSettings web;
  web.tls = std::move(settings);
  return std::make_shared<const WebGeneration>(WebGeneration{std::move(web), *context});
}

class HttpTlsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening = listen_on("127.0.0.1:0");
    ASSERT_TRUE(listening) << listening.error().message();
    auto server = HttpServer::start(std::move(listening->sockets), routes_, 2, &access_);
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }
  const Endpoint& endpoint() { return server_->endpoints()[0]; }
  void replace(const pki::Request& request) {
    access_.replace(generation(pki::settings(pki::make(request))));
  }

  SystemClock clock_;
  WebAccess access_{clock_, generation(pki::settings(pki::make({.not_after = 1'900'000'000})))};
  Store store_;
  PageCache pages_{store_};
  Routes routes_{pages_, store_, {}};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTlsTest, AnswersByTls) {
  TlsPeer peer(endpoint());
  ASSERT_TRUE(peer.is_connected());
  EXPECT_EQ(peer.get("/-/healthy"), "HTTP/1.1 200 OK");
  EXPECT_EQ(peer.get("/nowhere"), "HTTP/1.1 404 Not Found");
}

TEST_F(HttpTlsTest, AConnectionKeepsItsCertificateAndTheNextHasTheNewOne) {
  TlsPeer old(endpoint());
  EXPECT_EQ(old.get("/-/healthy"), "HTTP/1.1 200 OK");
  replace({.not_after = 1'950'000'000});
  TlsPeer fresh(endpoint());
  EXPECT_EQ(fresh.get("/-/healthy"), "HTTP/1.1 200 OK");
  EXPECT_EQ(fresh.not_after(), 1'950'000'000);
  EXPECT_EQ(old.get("/-/healthy"), "HTTP/1.1 200 OK");
  EXPECT_EQ(old.not_after(), 1'900'000'000);
}

TEST_F(HttpTlsTest, AContextLivesAsLongAsItsConnections) {
  const std::weak_ptr<const TlsContext> first = access_.current()->tls;
  {
    TlsPeer peer(endpoint());
    ASSERT_TRUE(peer.is_connected());
    replace({.not_after = 1'950'000'000});
    EXPECT_EQ(peer.get("/-/healthy"), "HTTP/1.1 200 OK");
    EXPECT_FALSE(first.expired());
  }
  while (!first.expired())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // ctest's timeout ends it
}

TEST_F(HttpTlsTest, TheProbeNeedsNoCertificateOfTheClient) {
  TlsSettings settings = pki::settings(pki::make());
  settings.client_auth = ClientAuth::require_verified;
  settings.client_ca = pki::ca().certificate;
  access_.replace(generation(settings));
  const Result<Done> answer = server_->probe(std::chrono::seconds(20));
  EXPECT_TRUE(answer) << answer.error().message();
  EXPECT_NE(TlsPeer(endpoint()).get("/-/healthy"), "HTTP/1.1 200 OK");
}

TEST_F(HttpTlsTest, PlainHttpIsClosed) {
  const Descriptor client(::socket(endpoint().address.ss_family, SOCK_STREAM, 0));
  ASSERT_EQ(
      connect(client.number(), reinterpret_cast<const sockaddr*>(&endpoint().address), endpoint().length), 0);
  const std::string request = "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n";
  send(client.number(), request.data(), request.size(), MSG_NOSIGNAL);
  char byte = 0;
  EXPECT_LE(recv(client.number(), &byte, 1, 0), 0);
}

TEST_F(HttpTlsTest, StopsWithHandshakesUnderWay) {
  TlsPeer idle(endpoint());
  const Descriptor silent(::socket(endpoint().address.ss_family, SOCK_STREAM, 0));
  ASSERT_EQ(
      connect(silent.number(), reinterpret_cast<const sockaddr*>(&endpoint().address), endpoint().length), 0);
  server_->stop();
  EXPECT_NE(idle.get("/-/healthy"), "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace gpumeter

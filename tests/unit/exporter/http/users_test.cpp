#include <crypt.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "exporter/access/access.hpp"
#include "exporter/http/server.hpp"
#include "exporter/listen/socket.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {
namespace {

constexpr const char* kDave = "Authorization: Basic ZGF2ZTpkYXZlMTIz\r\n";  // dave:dave123
constexpr const char* kWrong = "Authorization: Basic ZGF2ZTpkYXZlMTI0\r\n";

WebSettings settings_with_dave() {
  crypt_data data{};
  WebSettings settings;
  settings.users["dave"] = crypt_r("dave123", "$2y$04$abcdefghijklmnopqrstuu", &data);
  return settings;
}

std::shared_ptr<const WebGeneration> generation(WebSettings settings) {
  return std::make_shared<const WebGeneration>(WebGeneration{std::move(settings), nullptr});
}

/// A server that asks for users, and clients with one request each.
class HttpUsersTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listening = listen_on("127.0.0.1:0");
    ASSERT_TRUE(listening) << listening.error().message();
    auto server = HttpServer::start(std::move(listening->sockets), routes_, 2, &access_);
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
  }

  int connected() {
    const Endpoint& endpoint = server_->endpoints()[0];
    const int client = socket(endpoint.address.ss_family, SOCK_STREAM, 0);
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length), 0);
    return client;
  }
  static void send_request(int client, const std::string& headers, const std::string& method = "GET") {
    const std::string text =
        method + " /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n";
    EXPECT_EQ(send(client, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// The response; closes the socket.
  static std::string received(int client) {
    std::string response;
    char bytes[4096];
    for (ssize_t got = 0; (got = recv(client, bytes, sizeof bytes, 0)) > 0;) {
      response.append(bytes, static_cast<std::size_t>(got));
    }
    close(client);
    return response;
  }
  std::string ask(const std::string& headers, const std::string& method = "GET") {
    const int client = connected();
    send_request(client, headers, method);
    return received(client);
  }
  static std::string status_of(const std::string& response) {
    return response.substr(0, response.find("\r\n"));
  }

  const SystemClock clock_;
  Store store_;
  PageCache pages_{store_};
  Routes routes_{pages_, store_, {}};
  WebAccess access_{clock_, generation(settings_with_dave())};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpUsersTest, ServesUsersOnly) {
  ASSERT_TRUE(access_.start());
  for (int turn = 0; turn < 2; ++turn) {  // checked, then known
    EXPECT_EQ(status_of(ask(kDave)), "HTTP/1.1 200 OK");
    EXPECT_EQ(status_of(ask(kWrong)), "HTTP/1.1 401 Unauthorized");
  }
  const std::string response = ask("");
  EXPECT_EQ(status_of(response), "HTTP/1.1 401 Unauthorized");
  EXPECT_NE(response.find("\r\nWWW-Authenticate: Basic\r\n"), std::string::npos);
  EXPECT_TRUE(response.ends_with("\r\n\r\nUnauthorized\n"));
  EXPECT_TRUE(server_->probe(std::chrono::seconds(20)));
}

// The library asks about these requests before their body: the check of the password may pause them then.
TEST_F(HttpUsersTest, PausesRequestsThatAnnounceABody) {
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(status_of(ask(std::string(kDave) + "Content-Length: 4\r\n", "POST")),
            "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(status_of(ask(std::string(kWrong) + "Content-Length: 0\r\n")), "HTTP/1.1 401 Unauthorized");
  EXPECT_EQ(status_of(ask(std::string(kDave) + "Content-Length: 0\r\n")), "HTTP/1.1 200 OK");
}

TEST_F(HttpUsersTest, ManyClientsWaitTogether) {
  std::vector<int> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(connected());
    send_request(clients.back(), i % 2 == 0 ? kDave : kWrong);
  }
  for (int i = 0; i < 10; ++i) close(clients[static_cast<std::size_t>(i)]);  // clients that do not wait
  ASSERT_TRUE(access_.start());
  for (std::size_t i = 10; i < clients.size(); ++i) {
    EXPECT_EQ(status_of(received(clients[i])), i % 2 == 0 ? "HTTP/1.1 200 OK" : "HTTP/1.1 401 Unauthorized");
  }
}

// More requests wait than a thread has connections: the oldest give way, and the probe has its place.
TEST_F(HttpUsersTest, WaitingRequestsLeaveRoomForTheProbe) {
  std::vector<int> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(connected());
    send_request(clients.back(), kDave);
  }
  EXPECT_TRUE(server_->probe(std::chrono::seconds(20)));
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(status_of(received(clients.back())), "HTTP/1.1 200 OK");
  clients.pop_back();
  for (const int client : clients) close(client);
}

TEST_F(HttpUsersTest, StopsWhileRequestsWait) {
  std::vector<int> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(connected());
    send_request(clients.back(), i % 2 == 0 ? kDave : kWrong);
  }
  server_->stop();
  for (const int client : clients) close(client);
}

}  // namespace
}  // namespace gpumeter

#pragma once
/// A server with one page on a port of the loopback interface, and a client that sends bytes as they are.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/worker.hpp"
#include "exporter/http/server.hpp"
#include "exporter/listen/socket.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {

inline constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};
inline constexpr std::string_view kUpPage = "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up 1\n";

inline constexpr auto kPatience = std::chrono::seconds(20);

/// A client that sends exactly the given bytes.
class Client {
 public:
  explicit Client(const Endpoint& endpoint) : socket_(socket(endpoint.address.ss_family, SOCK_STREAM, 0)) {
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length) != 0) {
      ADD_FAILURE() << "cannot connect to " << endpoint.text();
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(socket_); }

  void send(std::string_view bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL), ssize_t(bytes.size()));
  }
  /// Sends the bytes with the FIN in the same packet.
  void send_last(std::string_view bytes) {
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    send(bytes);
    shutdown(socket_, SHUT_WR);
  }
  /// Returns all bytes until the server closes.
  std::string receive_all() {
    while (receive()) {
    }
    return std::exchange(buffer_, {});
  }
  bool is_closed() {
    char byte = 0;
    return recv(socket_, &byte, 1, MSG_DONTWAIT) == 0;
  }
  /// Returns one response with a body of Content-Length.
  std::string receive_response() {
    while (buffer_.find("\r\n\r\n") == std::string::npos) {
      if (!receive()) return "connection closed";
    }
    const std::size_t body = buffer_.find("\r\n\r\n") + 4;
    const std::size_t length = buffer_.find("Content-Length: ");
    const std::size_t end = body + std::stoul(buffer_.substr(length + 16));
    while (buffer_.size() < end) {
      if (!receive()) return "body cut off";
    }
    std::string response = buffer_.substr(0, end);
    buffer_.erase(0, end);
    return response;
  }

 private:
  bool receive() {
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) buffer_.append(bytes, std::size_t(got));
    return got > 0;
  }

  int socket_;
  std::string buffer_;
};

/// Sorts the headers, because the library chooses their order, and removes the Date.
inline std::string normalized(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  if (end == std::string::npos) return response;
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < end;) {
    const std::size_t next = response.find("\r\n", begin) + 2;
    lines.push_back(response.substr(begin, next - begin));
    begin = next;
  }
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("Date: "); });
  std::sort(lines.begin() + 1, lines.end());
  std::string result;
  for (const std::string& line : lines) result += line;
  return result + response.substr(end + 2);
}

inline std::string status_of(const std::string& response) {
  return response.substr(0, response.find("\r\n"));
}
inline std::string body_of(const std::string& response) {
  return response.substr(response.find("\r\n\r\n") + 4);
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    publish(1);
    auto listening = listen_on("127.0.0.1:0");
    ASSERT_TRUE(listening) << listening.error().message();
    auto server = HttpServer::start(std::move(listening->sockets), routes_);
    ASSERT_TRUE(server) << server.error().message();
    server_ = *std::move(server);
    ASSERT_TRUE(looks_.start("looks", [this] {
      server_->look();
      return Nanoseconds(std::chrono::milliseconds(50));
    }));
  }
  void TearDown() override { looks_.stop(); }

  void publish(double value) {
    up_.add(kUp, {}, value);
    up_.commit({});
  }
  const Endpoint& endpoint() { return server_->endpoints()[0]; }
  /// Sends one request on its own connection.
  std::string ask(const std::string& request_line, const std::string& headers = "") {
    Client client(endpoint());
    client.send(request_line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
    return normalized(client.receive_all());
  }
  std::string counts() {
    std::string text;
    for (const auto& [code, count] : server_->counts()) {
      if (count != 0) text += std::to_string(code) + ": " + std::to_string(count) + "\n";
    }
    return text;
  }

  std::atomic<bool> hang_ = false;  // scrapes of a short page hang on their HTTP thread
  std::atomic<bool> hangs_ = false;
  Store store_;
  SeriesList up_{store_.attach("amd")};
  PageCache pages_{store_};
  Routes routes_{pages_,
                 store_,
                 {.devices = []() -> std::vector<DeviceStatus> { throw std::runtime_error("no"); },
                  .collectors =
                      [] {
                        return std::vector<CollectorState>{{"amd", true}};
                      },
                  .served =
                      [this] {
                        while (hang_) hangs_ = true;
                      }}};
  std::unique_ptr<HttpServer> server_;
  const SystemClock clock_;
  Worker looks_{clock_};  // in place of the daemon's watchdog
};

}  // namespace gpumeter

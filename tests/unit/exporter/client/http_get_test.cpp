#include "exporter/client/http_get.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "base/descriptor.hpp"

namespace gpumeter {
namespace {

std::string parsed(std::string_view text) {
  const Result<HttpAddress> address = parse_http_address(text);
  return address ? address->host + " " + address->port : address.error().message();
}

TEST(HttpGet, UnderstandsUrlsAndListenAddresses) {
  EXPECT_EQ(parsed("http://gpu7:9000"), "gpu7 9000");
  EXPECT_EQ(parsed("http://[::1]:9000/"), "::1 9000");
  EXPECT_EQ(parsed("gpu7"), "gpu7 10478");
  EXPECT_EQ(parsed("[fe80::1]"), "fe80::1 10478");
  EXPECT_EQ(parsed(":10478"), "localhost 10478");
  EXPECT_EQ(parsed("0.0.0.0:1"), "localhost 1");
  EXPECT_EQ(parsed("[::]:1"), "localhost 1");
  EXPECT_EQ(parse_http_address("unix:/run/x.sock")->socket, "/run/x.sock");
  EXPECT_EQ(parsed("https://gpu7:9000/"), "gpu7 9000");
  EXPECT_TRUE(parse_http_address("https://gpu7")->is_tls);
  EXPECT_FALSE(parse_http_address("http://gpu7")->is_tls);
}

TEST(HttpGet, RefusesWhatIsNoAddress) {
  for (const char* text : {"https://http://a", "http://a:b", "http://a/metrics", "a:70000", "::1", "user@a:1",
                           "a b", "unix:x"}) {
    EXPECT_EQ(parsed(text), std::string(text) + ": must be http://host:port or https://host:port");
  }
}

/// A server that sends one fixed answer to each of `clients` clients, then closes or stays silent.
class Server {
 public:
  Server(std::string answer, bool closes, int clients = 1)
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), size);
    listen(listener_.number(), 4);
    getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    address_ = {"127.0.0.1", std::to_string(ntohs(address.sin_port))};
    thread_ = std::thread([this, answer = std::move(answer), closes, clients] {
      for (int i = 0; i < clients; ++i) serve(answer, closes);
    });
  }
  ~Server() { thread_.join(); }

  Result<HttpAnswer> get(std::chrono::milliseconds patience, std::size_t most = 1000) const {
    return http_get(address_, "/x", std::chrono::steady_clock::now() + patience, most);
  }
  HttpAddress address_;

 private:
  void serve(const std::string& answer, bool closes) {
    const Descriptor client(accept(listener_.number(), nullptr, nullptr));
    char request[4096];
    if (recv(client.number(), request, sizeof request, 0) <= 0) return;
    send(client.number(), answer.data(), answer.size(), MSG_NOSIGNAL);
    if (!closes) recv(client.number(), request, sizeof request, 0);  // until the client has left
  }

  Descriptor listener_;
  std::thread thread_;
};

constexpr std::chrono::seconds kLong{30};

TEST(HttpGet, ReturnsStatusAndBody) {
  const Server server("HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno\n", true);
  const Result<HttpAnswer> answer = server.get(kLong);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 404U);
  EXPECT_EQ(answer->body, "no\n");
}

std::string error_of(const std::string& answer, bool closes, std::chrono::milliseconds patience = kLong) {
  const Server server(answer, closes);
  const Result<HttpAnswer> got = server.get(patience);
  return got ? "" : got.error().message();
}

TEST(HttpGet, RefusesWhatIsNotAWholeAnswer) {
  EXPECT_EQ(error_of("SSH-2.0-OpenSSH\r\n", true), "the answer is not HTTP");
  EXPECT_EQ(error_of("HTTP/1.1 x\r\n\r\n", true), "the answer is not HTTP");
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", true), "the answer ends too early");
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\n\r\n" + std::string(2000, 'x'), true),
            "the answer has more than 1000 bytes");
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\n\r\nhalf", false, std::chrono::milliseconds(200)),
            "no complete answer in time");
}

TEST(HttpGet, JoinsTheChunksOfAnAnswer) {
  const auto body_of = [](const std::string& chunks) {
    const Result<HttpAnswer> answer =
        parse_http_answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n" + chunks);
    return answer ? answer->body : answer.error().message();
  };
  EXPECT_EQ(body_of("3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"), "abc0123456789");
  EXPECT_EQ(body_of("0\r\n\r\n"), "");
  const std::string cut = "the answer ends too early";
  for (const char* const wrong : {"", "3\r\nabc\r\n", "3\r\nab", "3\r\nabcde\r\n0\r\n", "-1\r\n", "x\r\n",
                                  "ffffffffffffffff\r\nabc\r\n"}) {
    EXPECT_EQ(body_of(wrong), cut) << wrong;
  }
}

TEST(HttpGet, KnowsThatNobodyListens) {
  HttpAddress address;
  {
    const Server server("HTTP/1.1 200 OK\r\n\r\n", true);
    address = server.address_;
    ASSERT_TRUE(server.get(kLong));
  }
  const Result<HttpAnswer> answer = http_get(address, "/", std::chrono::steady_clock::now() + kLong, 1000);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->is_refused);
}

/// The first is the example of RFC 7617, section 2.
TEST(HttpGet, AuthorizesByUserAndPasswordInBase64) {
  EXPECT_EQ(basic_authorization({"Aladdin", "open sesame"}), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
  EXPECT_EQ(basic_authorization({"a", "b"}), "Basic YTpi");
  EXPECT_EQ(basic_authorization({"a", "\xff\xfe"}), "Basic YTr//g==");
  EXPECT_EQ(basic_authorization({"a", "bcd"}), "Basic YTpiY2Q=");
}

}  // namespace
}  // namespace gpumeter

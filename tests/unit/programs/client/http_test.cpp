#include "programs/client/http.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "base/descriptor.hpp"

namespace gpumeter::client {
namespace {

using std::chrono::milliseconds;

HttpClient client(const std::string& address, milliseconds total = milliseconds(30'000)) {
  return {*parse_address(address), {milliseconds(30'000), total, std::size_t{1} << 20U}, "test"};
}

/// A server that sends one answer to one client, and keeps the connection open if the answer is empty.
class Server {
 public:
  explicit Server(std::string answer) : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(listener_.number(), reinterpret_cast<const sockaddr*>(&address), size);
    listen(listener_.number(), 4);
    getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Descriptor client(accept(listener_.number(), nullptr, nullptr));
      char request[4096];
      if (recv(client.number(), request, sizeof request, 0) <= 0) return;
      send(client.number(), answer.data(), answer.size(), MSG_NOSIGNAL);
      if (answer.empty()) recv(client.number(), request, sizeof request, 0);  // until the client has left
    });
  }
  ~Server() { thread_.join(); }

  const std::string& address() const { return address_; }

 private:
  Descriptor listener_;
  std::string address_;
  std::thread thread_;
};

std::string answer_of(const std::string& text, milliseconds total = milliseconds(30'000)) {
  const Server server(text);
  const Result<HttpClient::Answer> answer = client(server.address(), total).get("/x");
  return answer ? std::to_string(answer->status) + " " + answer->body : answer.error().message();
}

TEST(ProgramsHttp, ReturnsStatusAndBody) {
  EXPECT_EQ(answer_of("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"), "404 no");
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            "200 abc");
}

TEST(ProgramsHttp, KeepsToItsLimits) {
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\n\r\n" + std::string((1U << 20U) + 1, 'x')),
            "the answer is longer than 1 MiB");
  EXPECT_EQ(answer_of("", milliseconds(100)), "no complete answer in time");
  EXPECT_EQ(answer_of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"), "the answer ends too early");
}

TEST(ProgramsHttp, TakesAVirtualMachinesAddress) {
  const Result<Address> host = parse_address("vsock:2:10478");
  ASSERT_TRUE(host) << host.error().message();
  EXPECT_EQ(host->host, "vsock:2:10478");
  for (const char* odd : {"vsock::10478", "vsock:2", "vsock:x:10478"}) {
    const Result<Address> address = parse_address(odd);
    ASSERT_FALSE(address) << odd;
    EXPECT_EQ(address.error().message(),
              "\"" + std::string(odd) + "\": write vsock:CID:PORT; CID 2 is the host of a virtual machine");
  }
}

TEST(ProgramsHttp, ReadsFromAVirtualMachine) {
  const sockaddr_vm address = *vsock::parse("vsock:1:47118");
  const Descriptor listener(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener ||
      bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    GTEST_SKIP() << "no AF_VSOCK here";
  }
  listen(listener.number(), 4);
  const std::string body(300'000, 'x');
  std::thread server([&] {
    for (int answers = 0; answers < 2; ++answers) {
      const Descriptor client(accept(listener.number(), nullptr, nullptr));
      char request[4096];
      if (recv(client.number(), request, sizeof request, 0) <= 0) return;
      const std::string answer = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body;
      send(client.number(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  });
  HttpClient http(*parse_address("vsock:1:47118"), {milliseconds(200), milliseconds(30'000), 1U << 20U},
                  "test");
  const Result<HttpClient::Answer> first = http.get("/x");
  const Result<HttpClient::Answer> second = http.get("/x");
  shutdown(listener.number(), SHUT_RDWR);
  server.join();
  if (!first) GTEST_SKIP() << "no vsock_loopback here: " << first.error().message();
  EXPECT_EQ(first->body, body);
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_EQ(second->body, body);
}

TEST(ProgramsHttp, KnowsThatNobodyListens) {
  std::string address;
  {
    const Server server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    address = server.address();
    HttpClient answered = client(address);
    EXPECT_TRUE(answered.get("/"));
    EXPECT_FALSE(answered.was_refused());
  }
  for (const std::string& nobody : {address, std::string("unix:/nowhere/gpumeter.sock")}) {
    HttpClient refused = client(nobody);
    EXPECT_FALSE(refused.get("/")) << nobody;
    EXPECT_TRUE(refused.was_refused()) << nobody;
  }
}

}  // namespace
}  // namespace gpumeter::client

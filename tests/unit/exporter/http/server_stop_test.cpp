#include <sys/epoll.h>
#include <sys/syscall.h>

#include <thread>

#include "tests/unit/exporter/http/server_fixture.hpp"

#if defined(__has_feature)
#define GPUMETER_HAS_FEATURE(x) __has_feature(x)
#else
#define GPUMETER_HAS_FEATURE(x) 0
#endif

namespace gpumeter {
namespace {

/// This thread removes descriptors from epoll instances 3 ms late, as a thread that is off its processor.
std::atomic<pid_t> slow_thread = 0;

}  // namespace
}  // namespace gpumeter

/// In place of the C library's, also for libmicrohttpd. ThreadSanitizer has its own.
#if !defined(__SANITIZE_THREAD__) && !GPUMETER_HAS_FEATURE(thread_sanitizer)
extern "C" int epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) noexcept {
  constexpr useconds_t kLate = 3000;
  if (operation == EPOLL_CTL_DEL && gpumeter::slow_thread == gettid()) usleep(kLate);
  return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, descriptor, event));
}
#endif

namespace gpumeter {
namespace {

using HttpServerStop = HttpServerTest;

/// The library misses a FIN that arrives with the request.
TEST_F(HttpServerStop, ClosesAfterTheAnswerIfTheClientHasClosedItsHalf) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint()));
    clients.back()->send_last("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (const auto& client : clients) {
    EXPECT_EQ(body_of(client->receive_all()), kUpPage);
    EXPECT_TRUE(client->is_closed());
  }
}

/// systemd keeps a socket that it passed; the duplicate represents it here.
TEST_F(HttpServerStop, LeavesASharedSocketToTheNextServerWithEveryRequestAnswered) {
  auto listening = listen_on("127.0.0.1:0");
  const int kept = dup(listening->sockets[0].descriptor());
  auto first = HttpServer::start(std::move(listening->sockets), routes_);
  const Endpoint where = (*first)->endpoints()[0];
  std::vector<std::unique_ptr<Client>> clients;
  const auto ask = [&] {
    for (int i = 0; i < 50; ++i) {
      clients.push_back(std::make_unique<Client>(where));
      clients.back()->send("GET /metrics HTTP/1.0\r\n\r\n");
    }
  };
  ask();
  (*first)->stop();
  ask();
  std::vector<ListenSocket> listeners;
  listeners.push_back(*ListenSocket::adopt(kept));
  auto second = HttpServer::start(std::move(listeners), routes_);
  ASSERT_TRUE(second) << second.error().message();
  for (const auto& client : clients) EXPECT_EQ(body_of(client->receive_all()), kUpPage);
}

/// A client that does not care for an answer.
void come_and_go(const Endpoint& where) {
  constexpr std::string_view kRequest = "GET /-/healthy HTTP/1.0\r\n\r\n";
  const Descriptor client(socket(where.address.ss_family, SOCK_STREAM, 0));
  if (connect(client.number(), reinterpret_cast<const sockaddr*>(&where.address), where.length) != 0) return;
  static_cast<void>(send(client.number(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL));
}

/// If a thread were inside the library meanwhile, the library would abort the process; see RollCall.
TEST_F(HttpServerStop, StopsWhileClientsComeAndGo) {
  for (int round = 0; round < 5; ++round) {
    auto listening = listen_on("127.0.0.1:0");
    auto server = HttpServer::start(std::move(listening->sockets), routes_);
    ASSERT_TRUE(server) << server.error().message();
    const Endpoint where = (*server)->endpoints()[0];
    std::atomic<bool> is_over = false;
    std::vector<std::thread> comers(3);
    for (std::thread& comer : comers) {
      comer = std::thread([&] {
        while (!is_over) come_and_go(where);
      });
    }
    slow_thread = gettid();
    (*server)->stop();
    slow_thread = 0;
    is_over = true;
    for (std::thread& comer : comers) comer.join();
    EXPECT_EQ((*server)->probe(kPatience).error().message(), "HTTP is not served");
  }
}

}  // namespace
}  // namespace gpumeter

#include "exporter/http/server.hpp"

#include <sys/epoll.h>
#include <sys/syscall.h>

#include <thread>

#include "exporter/text/format.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/unit/exporter/http/server_fixture.hpp"

namespace gpumeter {
namespace {

TEST_F(HttpServerTest, SendsThePageWithItsHeaders) {
  EXPECT_EQ(ask("GET /metrics"),
            "HTTP/1.1 200 OK\r\n"
            "Connection: close\r\n"
            "Content-Length: " +
                std::to_string(kUpPage.size()) +
                "\r\n"
                "Content-Type: text/plain; version=0.0.4; charset=utf-8; escaping=underscores\r\n"
                "Vary: Accept, Accept-Encoding\r\n"
                "\r\n" +
                std::string(kUpPage));
}

TEST_F(HttpServerTest, SendsTheSameHeadersAndNoBodyToHead) {
  const std::string get = ask("GET /metrics");
  EXPECT_EQ(ask("HEAD /metrics"), get.substr(0, get.find("\r\n\r\n") + 4));
}

TEST_F(HttpServerTest, SendsGzippedOpenMetrics) {
  const std::string page = *gzip("# TYPE gpu_up gauge\n# HELP gpu_up Up.\ngpu_up 1\n# EOF\n");
  EXPECT_EQ(
      ask("GET /metrics",
          "Accept: application/openmetrics-text;version=1.0.0\r\nAccept: */*;q=0.1\r\n"
          "Accept-Encoding: gzip\r\n"),
      "HTTP/1.1 200 OK\r\n"
      "Connection: close\r\n"
      "Content-Encoding: gzip\r\n"
      "Content-Length: " +
          std::to_string(page.size()) +
          "\r\n"
          "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores\r\n"
          "Vary: Accept, Accept-Encoding\r\n"
          "\r\n" +
          page);
}

TEST_F(HttpServerTest, ServesANewPageAfterACommitOnOneConnection) {
  Client client(endpoint());
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(request);
  EXPECT_EQ(body_of(client.receive_response()), kUpPage);
  client.send(request);
  EXPECT_EQ(body_of(client.receive_response()), kUpPage);
  publish(0);
  client.send(request);
  EXPECT_EQ(body_of(client.receive_response()), "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up 0\n");
}

TEST_F(HttpServerTest, ReadsTheQueryDecoded) {
  EXPECT_EQ(body_of(ask("GET /metrics?collect%5B%5D=amd")), kUpPage);
  EXPECT_EQ(body_of(ask("GET /metrics?collect[]=a%20b&debug")),
            "Couldn't create filtered metrics handler: missing collector: a b");
}

TEST_F(HttpServerTest, RefusesMethodsBeforeTheirBody) {
  const std::string refusal = "HTTP/1.1 405 Method Not Allowed";
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string response = ask(std::string(method) + " /metrics", "Content-Length: 300000\r\n");
    EXPECT_EQ(status_of(response), refusal) << method;
    EXPECT_NE(response.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos) << method;
  }
}

TEST_F(HttpServerTest, RefusesBodiesAndClosesTheConnection) {
  Client sized(endpoint());
  sized.send("GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(body_of(sized.receive_all()), "A request body is not allowed.\n");
  Client chunked(endpoint());
  chunked.send("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(chunked.receive_all()), "HTTP/1.1 400 Bad Request");
}

TEST_F(HttpServerTest, AnswersExceptionsWithAnInternalError) {
  EXPECT_EQ(status_of(ask("GET /api/v1/devices")), "HTTP/1.1 500 Internal Server Error");
  EXPECT_EQ(body_of(ask("GET /")), "Internal error.\n");
}

TEST_F(HttpServerTest, CountsAnswersByCodeButNoHealthProbes) {
  ask("GET /metrics");
  ask("HEAD /metrics");
  ask("GET /nowhere");
  ask("GET /-/healthy");
  ask("GET /-/ready");
  EXPECT_EQ(counts(), "200: 2\n404: 1\n");
}

TEST_F(HttpServerTest, SendsWholePagesToManyScrapersWhileCommitsGoOn) {
  std::atomic<bool> stop = false;
  std::thread lane([&] {
    while (!stop) publish(1);
  });
  std::vector<std::thread> scrapers;
  std::atomic<int> wrong{0};
  for (int s = 0; s < 4; ++s) {
    scrapers.emplace_back([&] {
      Client client(endpoint());
      for (int i = 0; i < 100; ++i) {
        client.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        if (body_of(client.receive_response()) != kUpPage) ++wrong;
      }
    });
  }
  for (std::thread& scraper : scrapers) scraper.join();
  stop = true;
  lane.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(counts(), "200: 400\n");
}

TEST_F(HttpServerTest, ServesSeveralListeners) {
  auto first = listen_on(":0");
  auto second = listen_on("127.0.0.1:0");
  std::vector<ListenSocket> listeners;
  listeners.push_back(std::move(first->sockets[0]));
  listeners.push_back(std::move(second->sockets[0]));
  auto server = HttpServer::start(std::move(listeners), routes_);
  ASSERT_TRUE(server) << server.error().message();
  const auto well = (*server)->probe(kPatience);
  EXPECT_TRUE(well) << well.error().message();
  for (const Endpoint& each : (*server)->endpoints()) {
    Client client(each);
    client.send("GET /metrics HTTP/1.0\r\n\r\n");
    EXPECT_EQ(body_of(client.receive_all()), kUpPage) << each.text();
  }
}

using HttpServerProbe = HttpServerTest;

TEST_F(HttpServerProbe, IsFoundWellByItsProbeUntilItStops) {
  const auto well = server_->probe(kPatience);
  EXPECT_TRUE(well) << well.error().message();
  server_->stop();
  EXPECT_EQ(server_->probe(kPatience).error().message(), "HTTP is not served");
}

/// The other thread of the listener still answers.
TEST_F(HttpServerProbe, IsNotFoundWellByItsProbeWhileOneThreadHangs) {
  hang_ = true;
  Client client(endpoint());
  client.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  while (!hangs_) std::this_thread::yield();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server_->probe(std::chrono::milliseconds(50)).error().message(),
              "HTTP listener " + endpoint().text() + ": no answer before the deadline");
  }
  hang_ = false;
  const auto well = server_->probe(kPatience);
  EXPECT_TRUE(well) << well.error().message();
}

TEST_F(HttpServerProbe, IsFoundWellByItsProbeWhateverClientsHold) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(std::make_unique<Client>(endpoint()));
    if (i % 2 == 0) clients.back()->send("GET /metrics HT");
  }
  const auto well = server_->probe(kPatience);
  EXPECT_TRUE(well) << well.error().message();
  EXPECT_EQ(body_of(ask("GET /metrics")), kUpPage);
}

/// Asks a server on the Unix socket.
std::string ask_at(const Endpoint& endpoint, const std::string& path) {
  Client client(endpoint);
  client.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  return client.receive_all();
}

TEST_F(HttpServerTest, HasPrivateRoutesOnPrivateListenersOnly) {
  const Tree folder = make_tree({});
  Routes routes(pages_, store_, {.private_json = {{"/api/v1/processes", [] { return "{}\n"; }}}});
  std::vector<ListenSocket> listeners;
  bool is_absent = false;
  for (const char* const name : {"public", "private"}) {
    const std::string path = folder / name;
    auto opened = name == std::string("private") ? ListenSocket::open_private(path)
                                                 : ListenSocket::open(Endpoint::of_path(path), is_absent);
    ASSERT_TRUE(opened) << opened.error().message();
    listeners.push_back(*std::move(opened));
  }
  auto server = HttpServer::start(std::move(listeners), routes);
  ASSERT_TRUE(server) << server.error().message();
  EXPECT_EQ(std::filesystem::status(folder / "private").permissions(), std::filesystem::perms(0660));
  const auto endpoints = (*server)->endpoints();
  EXPECT_EQ(status_of(ask_at(endpoints[0], "/api/v1/processes")), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(body_of(ask_at(endpoints[1], "/api/v1/processes")), "{}\n");
  EXPECT_EQ(status_of(ask_at(endpoints[0], "/api/v1/processes")), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(body_of(ask_at(endpoints[1], "/metrics")), kUpPage);
  EXPECT_TRUE((*server)->probe(kPatience));
  (*server)->stop();
}

using HttpRequests = HttpServerTest;

TEST_F(HttpRequests, AnswersOnceToAContentLengthThatIsNoNumber) {
  for (const char* length : {"abc", "-1", "+1", "1,1", "0x10", ""}) {
    EXPECT_EQ(ask("GET /metrics", std::string("Content-Length: ") + length + "\r\n"),
              "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 32\r\n"
              "Content-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n\r\n"
              "Content-Length is not a number.\n")
        << length;
  }
  const std::string refusal = "A request body is not allowed.\n";
  EXPECT_EQ(body_of(ask("GET /metrics", "Content-Length: 99999999999999999999999\r\n")), refusal);
  EXPECT_EQ(body_of(ask("GET /metrics", "Content-Length: 0\r\nContent-Length: 5\r\n")), refusal);
  EXPECT_EQ(body_of(ask("GET /metrics", "Content-Length: 0\r\nContent-Length: 0\r\n")), kUpPage);
}

TEST_F(HttpRequests, RefusesMoreThan64ArgumentsAndAnswersToAnyNumber) {
  const auto ask_with = [&](int arguments) {
    std::string line = "GET /metrics?collect[]=amd";
    for (int i = 1; i < arguments; ++i) line += "&collect[]=amd";
    return ask(line);
  };
  EXPECT_EQ(body_of(ask_with(64)), kUpPage);
  for (const int arguments : {65, 200, 300, 1000}) {
    EXPECT_EQ(body_of(ask_with(arguments)), "More than 64 arguments are not allowed.\n") << arguments;
  }
  EXPECT_EQ(status_of(ask("GET /?" + std::string(15000, 'x'))), "HTTP/1.1 414 URI Too Long");
  EXPECT_EQ(status_of(ask("GET /" + std::string(15000, 'x'))), "HTTP/1.1 414 URI Too Long");
}

TEST_F(HttpRequests, AnswersWithTheLongestArgumentsThatItTakes) {
  std::string line = "GET /metrics?x=1";
  while (line.size() < 4096) line += "&" + std::string(69, 'y');
  EXPECT_EQ(body_of(ask(line.substr(0, 4 + 4096), "X: " + std::string(4000, 'z') + "\r\n")), kUpPage);
}

TEST_F(HttpRequests, CountsWhatTheLibraryRefuses) {
  ask("GET /" + std::string(40000, 'x'));
  ask("GET /", "X: " + std::string(40000, 'x') + "\r\n");
  ask("GET /", "no colon\r\n");
  ask("GET /?" + std::string(100, '&'));
  EXPECT_EQ(counts(), "400: 2\n414: 1\n431: 1\n");
}

TEST_F(HttpRequests, RefusesRequestsThatAProxyMayReadDifferently) {
  using namespace std::string_literals;
  const auto first_line = [&](const std::string& request) {
    Client client(endpoint());
    client.send(request);
    return status_of(client.receive_all());
  };
  const std::string bad = "HTTP/1.1 400 Bad Request";
  const std::string line = "GET /metrics HTTP/1.1\r\n", host = "Host: x\r\n", end = "\r\n";
  const std::string all_bad[] = {
      line + end,                                       // no Host
      line + host + host + end,                         // two
      line + host + "Content-Length : 5\r\n\r\nhello",  // a space before the colon
      line + host + "X\t: y\r\n" + end,
      line + host + ": y\r\n" + end,
      line + " X: y\r\n" + host + end,
      line + host + "X: y\r\n folded\r\n" + end,
      line + "Host: x\nX: a\r\n" + end,
      line + "Host: x\rX: a\r\n" + end,
      line + host + "X: a\0b\r\n"s + end,
      line + "X: a\0b\r\n"s + host + end,
      line + "X: a\0\r\n"s + host + end,
      line + host + "X\0: a\r\n"s + end,
      line + host + "\0X: y\r\n"s + end,
      line + host + "X: a\x01" + "b\r\n" + end,
      "GET /metrics\0 HTTP/1.1\r\n"s + host + end,
      "GET /metrics HTTP/1.1\0\r\n"s + host + end,
      "GET /metrics%00 HTTP/1.1\r\n" + host + end,  // the library would end the path here
      "GET /metrics%00x HTTP/1.1\r\n" + host + end,
      "GET %00/metrics HTTP/1.1\r\n" + host + end,
      "GET /metrics?collect[]=amd%00x HTTP/1.1\r\n" + host + end,
      "GET /met rics HTTP/1.1\r\n" + host + end,
      "GET /metrics FOO/1.1\r\n" + host + end,
      "GET /metrics\r\n" + host + end,
  };
  for (const std::string& request : all_bad) EXPECT_EQ(first_line(request), bad) << request;
  EXPECT_EQ(counts(), "400: " + std::to_string(std::size(all_bad)) + "\n");
  EXPECT_EQ(first_line("GET /metrics HTTP/2.0\r\n" + host + end), "HTTP/1.1 505 HTTP Version Not Supported");
  EXPECT_EQ(counts(), "400: " + std::to_string(std::size(all_bad)) + "\n505: 1\n");
}

/// An escape is decoded once, and one that is none stays as it is.
TEST_F(HttpRequests, DecodesEscapesOfThePathOnce) {
  EXPECT_EQ(body_of(ask("GET /%6detrics")), kUpPage);
  EXPECT_EQ(body_of(ask("GET /metrics?collect%5B%5D=amd")), kUpPage);
  for (const char* path :
       {"/metrics%", "/metrics%0", "/metrics%0g", "/metrics%2500", "/%256detrics", "/metrics%01",
        "/metrics%20", "/metrics%0a", "/metrics%2f", "/metrics%3fx=1", "/metrics%c0%80", "/metrics%u0000",
        "/%2e/metrics", "/x/../metrics", "//metrics"}) {
    EXPECT_EQ(status_of(ask(std::string("GET ") + path)), "HTTP/1.1 404 Not Found") << path;
  }
}

TEST_F(HttpRequests, TakesUnusualButClearRequests) {
  for (const char* request :
       {"GET /metrics HTTP/1.0\r\n\r\n", "GET /metrics HTTP/1.0\n\n", "GET /metrics HTTP/1.0\nHost: x\n\n",
        "\r\nGET /metrics HTTP/1.0\r\nhost:\r\nX:  a\tb \r\n\r\n",
        "GET /metrics HTTP/1.0\r\nX: \xc3\xa4\r\nCookie: a=b; c\r\n\r\n"}) {
    Client client(endpoint());
    client.send(request);
    EXPECT_EQ(body_of(client.receive_all()), kUpPage) << request;
  }
}

#if defined(__has_feature)
#define GPUMETER_HAS_FEATURE(x) __has_feature(x)
#else
#define GPUMETER_HAS_FEATURE(x) 0
#endif

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

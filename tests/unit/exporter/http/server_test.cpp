#include "exporter/http/server.hpp"

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

}  // namespace
}  // namespace gpumeter

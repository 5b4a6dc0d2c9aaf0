#include "exporter/http/renderings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include "tests/unit/exporter/http/server_fixture.hpp"

namespace gpumeter {
namespace {

struct Connection {
  std::atomic<int> paused = 0;
  std::atomic<int> resumed = 0;
};
constexpr Pausing kPausing = {
    [](void* connection) noexcept { ++static_cast<Connection*>(connection)->paused; },
    [](void* connection) noexcept { ++static_cast<Connection*>(connection)->resumed; }};

/// Renders its own path, one page after the other, as the test permits.
class RenderingsTest : public testing::Test {
 protected:
  std::optional<HttpResponse> ask(const std::string& path, Connection& connection,
                                  const std::string& peer = "10.0.0.1") {
    if (auto answered = renderings_.answer_to(&connection)) return answered;
    const Rendering kind = path == "/metrics" ? Rendering::usual : Rendering::other;
    return renderings_.answer({.method = "GET", .path = path}, {&connection, peer, kind}, kPausing);
  }
  static void wait_for(const Connection& connection) {
    while (connection.resumed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  static std::string text(const std::optional<HttpResponse>& response) {
    if (!response) return "waits";
    return std::to_string(response->status) + " " +
           (response->bytes != nullptr ? *response->bytes : response->body.substr(0, 8));
  }

  // The renderings resume them until their end.
  std::deque<Connection> connections_;
  std::deque<Connection> crowd_;
  std::mutex mutex_;
  std::vector<std::string> rendered_;
  std::atomic<bool> goes_on_ = true;
  const SystemClock clock_;
  Renderings renderings_{clock_, [this](const HttpRequest& request) -> HttpResponse {
                           while (!goes_on_ && request.path != "/metrics") std::this_thread::yield();
                           const std::scoped_lock lock(mutex_);
                           return {.body = rendered_.emplace_back(request.path)};
                         }};
};

TEST_F(RenderingsTest, RequestsForAPageShareARendering) {
  std::array<Connection, 100> connections;
  for (Connection& each : connections) EXPECT_EQ(text(ask("/a", each)), "waits");
  ASSERT_TRUE(renderings_.start());
  for (Connection& each : connections) {
    wait_for(each);
    EXPECT_EQ(text(ask("/a", each)), "200 /a");
    EXPECT_EQ(each.paused, 1);
    EXPECT_EQ(each.resumed, 1);
  }
  EXPECT_EQ(rendered_.size(), 1U);
}

TEST_F(RenderingsTest, ScrapesGoFirstAndTooManyAreRefused) {
  std::deque<Connection>& connections = crowd_;
  for (std::size_t i = 0; i < Renderings::kMostWaiting; ++i) {
    EXPECT_EQ(text(ask("/" + std::to_string(i), connections.emplace_back())), "waits");
  }
  const auto refused = ask("/more", connections.emplace_back());
  EXPECT_EQ(text(refused), "503 Too many");
  EXPECT_STREQ(refused->headers.back().name, "Retry-After");
  Connection& scrape = connections_.emplace_back();
  EXPECT_EQ(text(ask("/metrics", scrape)), "waits") << "others took no place of a scrape's";
  ASSERT_TRUE(renderings_.start());
  wait_for(connections[Renderings::kMostWaiting - 1]);
  EXPECT_THAT(rendered_, testing::Contains("/metrics"));
  EXPECT_EQ(rendered_.back(), "/7");
}

TEST_F(RenderingsTest, AUsualPageDoesNotWaitForAnother) {
  goes_on_ = false;
  Connection& slow = connections_.emplace_back();
  Connection& scrape = connections_.emplace_back();
  EXPECT_EQ(text(ask("/slow", slow)), "waits");
  ASSERT_TRUE(renderings_.start());
  EXPECT_EQ(text(ask("/metrics", scrape)), "waits");
  wait_for(scrape);
  EXPECT_EQ(slow.resumed, 0);
  EXPECT_EQ(text(ask("/metrics", scrape)), "200 /metrics");
  goes_on_ = true;
}

// The attack: a host asks for one page after the other, each with other arguments.
TEST_F(RenderingsTest, AStrangersRequestsTakeNoPlaceOfAnother) {
  std::deque<Connection>& stranger = crowd_;
  const auto attack = [&] {
    return ask("/" + std::to_string(stranger.size()), stranger.emplace_back(), "10.0.0.66");
  };
  for (int i = 0; i < 1000; ++i) attack();
  EXPECT_EQ(text(attack()), "503 Too many");
  Connection& user = connections_.emplace_back();
  EXPECT_EQ(text(ask("/a", user)), "waits");
  Connection& same = connections_.emplace_back();
  EXPECT_EQ(text(ask("/0", same)), "waits") << "the stranger's page is theirs too";
  Connection& third = connections_.emplace_back();
  EXPECT_EQ(text(ask("/b", third, "10.0.0.3")), "waits");
  for (int i = 0; i < 1000; ++i) attack();
  EXPECT_EQ(user.resumed + same.resumed + third.resumed, 0);
  ASSERT_TRUE(renderings_.start());
  for (const Connection* each : {&user, &same, &third}) wait_for(*each);
  EXPECT_EQ(text(ask("/a", user)), "200 /a");
  const std::scoped_lock lock(mutex_);
  EXPECT_EQ(rendered_[1], "/a") << "the user's turn comes after one of the stranger's pages";
}

// The first who asked for it need not be the one who keeps it.
TEST_F(RenderingsTest, APageThatOthersWaitForTooIsNotLost) {
  std::deque<Connection>& stranger = crowd_;
  Connection& user = connections_.emplace_back();
  for (std::size_t i = 0; i < Renderings::kMostWaiting; ++i) {
    ask("/" + std::to_string(i), stranger.emplace_back(), "10.0.0.66");
    if (i + 1 == Renderings::kMostWaiting) ask("/" + std::to_string(i), user);
  }
  Connection& third = connections_.emplace_back();
  EXPECT_EQ(text(ask("/b", third, "10.0.0.3")), "waits");
  EXPECT_EQ(stranger[7].resumed, 1);
  EXPECT_EQ(stranger[6].resumed, 1);
  EXPECT_EQ(user.resumed, 0);
  renderings_.close();
}

TEST_F(RenderingsTest, ARequestWhoseClientIsGoneNeedNotWait) {
  Connection& gone = connections_.emplace_back();
  Connection& other = connections_.emplace_back();
  EXPECT_EQ(text(ask("/a", gone)), "waits");
  renderings_.release(&gone);
  renderings_.release(&gone);  // no effect: it does not wait
  EXPECT_EQ(gone.resumed, 1);
  renderings_.forget(&gone);  // a new request may have the same address
  ASSERT_TRUE(renderings_.start());
  EXPECT_EQ(text(ask("/b", other)), "waits");
  wait_for(other);
  EXPECT_EQ(rendered_, std::vector<std::string>{"/b"}) << "nobody waits for /a";
}

TEST_F(RenderingsTest, CloseResumesAll) {
  goes_on_ = false;
  Connection& running = connections_.emplace_back();
  Connection& waiting = connections_.emplace_back();
  ASSERT_TRUE(renderings_.start());
  EXPECT_EQ(text(ask("/a", running)), "waits");
  EXPECT_EQ(text(ask("/b", waiting)), "waits");
  renderings_.close();
  EXPECT_EQ(running.resumed + waiting.resumed, 2);
  EXPECT_EQ(text(ask("/a", running)), "503 Too many");
  EXPECT_EQ(text(ask("/c", waiting)), "503 Too many");
  goes_on_ = true;
}

/// The attack: readers of pages whose rendering does not end.
TEST(SlowPages, KeepNoScrapeWaiting) {
  std::atomic<bool> goes_on = false;
  const auto wait = [&] {
    while (!goes_on) std::this_thread::yield();
  };
  Store store;
  SeriesList up{store.attach("amd")};
  up.add(kUp, {}, 1);
  up.commit({});
  PageCache pages{store};
  Routes routes{pages,
                store,
                {.devices =
                     [&] {
                       wait();
                       return std::vector<DeviceStatus>();
                     },
                 .workloads =
                     [&] {
                       wait();
                       return std::vector<WorkloadCost>();
                     }}};
  auto listening = listen_on("127.0.0.1:0");
  ASSERT_TRUE(listening);
  auto server = HttpServer::start(std::move(listening->sockets), routes);
  ASSERT_TRUE(server);
  const Endpoint& endpoint = (*server)->endpoints()[0];
  std::deque<Client> readers;
  for (const std::string path : {"/api/v1/workloads", "/api/v1/series", "/api/v1/devices", "/"}) {
    for (int i = 0; i < 4; ++i) {
      readers.emplace_back(endpoint).send("GET " + path +
                                          " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    }
  }
  for (int i = 0; i < 8; ++i) {  // of both threads
    Client scrape(endpoint);
    scrape.send("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_EQ(body_of(scrape.receive_all()), kUpPage);
  }
  goes_on = true;
  for (Client& reader : readers) EXPECT_EQ(status_of(reader.receive_all()), "HTTP/1.1 200 OK");
  (*server)->stop();
}

}  // namespace
}  // namespace gpumeter

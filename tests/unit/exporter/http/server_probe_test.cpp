#include <thread>

#include "tests/unit/exporter/http/server_fixture.hpp"

namespace gpumeter {
namespace {

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

}  // namespace
}  // namespace gpumeter

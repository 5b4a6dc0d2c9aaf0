#include "collectors/profiles/service_door.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/fakes/http2_frames.hpp"
#include "tests/fakes/ras_server.hpp"
#include "tests/fakes/real_clock.hpp"

namespace gpumeter::profiles {
namespace {

using std::chrono::milliseconds;

/// Waits for the client to send its request, and answers with these bytes.
RasServer::Serve answering(std::string bytes) {
  return [bytes = std::move(bytes)](RasConnection& client) {
    client.line();  // of the preface of HTTP/2
    client.say(bytes);
    while (!client.stops() && !client.line().empty()) {
    }
  };
}
std::string answer(std::string_view message) {
  using namespace http2;
  return settings() + headers() + data_frame(prefixed(message)) + trailers("0");
}
const Order kOrder = {"/logs/gpumeter_bert_77.json", {std::nullopt, milliseconds(20)}};

PortHolder holder(int pid, std::uint16_t port) { return {{pid, 1000}, {port, "127.0.0.1", 77, 1000, 0}}; }
std::unique_ptr<ServiceDoor> door_to(const RasServer& server) {
  auto door = std::make_unique<ServiceDoor>(kRealClock);
  door->found({holder(42, server.port()), holder(7, 1)});
  return door;
}
Progress ended(const ServiceDoor& door, int pid) {
  for (int i = 0; i < 2000 && door.progress(pid).stage == Stage::taken; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  return door.progress(pid);
}

TEST(ServiceDoor, TakesATrace) {
  const RasServer server(answering(answer("")));
  const auto door = door_to(server);
  EXPECT_THAT(door->processes(), testing::SizeIs(2));
  EXPECT_EQ(door->processes()[0].pid, 7);
  EXPECT_EQ(door->progress(42).stage, Stage::none);
  ASSERT_TRUE(door->ask(42, kOrder, {}));
  EXPECT_FALSE(door->ask(42, kOrder, {}));  // has an order
  EXPECT_EQ(ended(*door, 42).stage, Stage::done);
  door->release(42);
  EXPECT_EQ(door->progress(42).stage, Stage::none);
  EXPECT_EQ(door->file_of(kOrder, 42, 1),
            "/logs/gpumeter_bert_77/plugins/profile/gpumeter_bert_77/42.xplane.pb");
}

TEST(ServiceDoor, ReportsFailures) {
  const RasServer empty(answering(answer("\x38\x01")));
  auto door = door_to(empty);
  ASSERT_TRUE(door->ask(42, kOrder, {}));
  EXPECT_EQ(ended(*door, 42).why, "the trace is empty");
  const RasServer busy(
      answering(http2::settings() + http2::trailers_only("6", "Another profiling session active.")));
  door = door_to(busy);
  ASSERT_TRUE(door->ask(42, kOrder, {}));
  EXPECT_THAT(ended(*door, 42).why, testing::HasSubstr("Another profiling session active."));
  const RasServer other(answering("HTTP/1.1 400 Bad Request\r\n\r\n"));
  door = door_to(other);
  ASSERT_TRUE(door->ask(42, kOrder, {}));
  EXPECT_EQ(ended(*door, 42).stage, Stage::failed);
  ASSERT_TRUE(door->ask(7, kOrder, {}));
  EXPECT_EQ(ended(*door, 7).why, "port 1: Connection refused");
}

TEST(ServiceDoor, RefusesWhatTheServiceLacks) {
  ServiceDoor door(kRealClock);
  EXPECT_EQ(door.ask(42, kOrder, {}).error().message(), "it no longer listens on its port");
  door.found({holder(42, 1)});
  EXPECT_EQ(door.ask(42, {"/logs/x.json", {10U, milliseconds(20)}}, {}).error().message(),
            "the profiler service of TensorFlow and JAX counts no steps; ask for seconds");
}

TEST(ServiceDoor, ConnectsToNoOtherProcess) {
  const RasServer server(answering(answer("")));
  ServiceDoor door(kRealClock, [](const tcp::Listener& listener) -> Result<Done> {
    return Error("port " + std::to_string(listener.inode) + " has another owner");
  });
  door.found({holder(42, server.port())});
  ASSERT_TRUE(door.ask(42, kOrder, {}));
  EXPECT_EQ(ended(door, 42).why, "port 77 has another owner");
}

TEST(ServiceDoor, EndsACall) {
  const RasServer silent([](RasConnection& client) {
    while (!client.stops() && !client.line().empty()) {
    }
  });
  const auto door = door_to(silent);
  ASSERT_TRUE(door->ask(42, {"/logs/x.json", {std::nullopt, std::chrono::hours(1)}}, {}));
  EXPECT_EQ(door->progress(42).stage, Stage::taken);
  door->release(42);
  EXPECT_EQ(door->progress(42).stage, Stage::none);
}

TEST(ProfilerService, ReadsAnswers) {
  EXPECT_FALSE(*parse_profile_response(""));
  EXPECT_TRUE(*parse_profile_response("\x38\x01"));
  EXPECT_TRUE(*parse_profile_response(std::string("\x32\x03\x0a\x01x\x38\x01", 7)));
  EXPECT_FALSE(parse_profile_response("\x32\x7f"));
  EXPECT_FALSE(parse_profile_response("\x38"));
}

}  // namespace
}  // namespace gpumeter::profiles

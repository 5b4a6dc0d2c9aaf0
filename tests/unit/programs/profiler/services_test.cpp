#include "programs/profiler/services.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/fakes/http2_frames.hpp"
#include "tests/fakes/ras_server.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

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
Progress ended(const Door& door, int pid) {
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

const Order kDebugOrder = {"/tmp/gpumeter_bert_77.json", {std::nullopt, milliseconds(1500)}};

PortHolder debug_holder(int pid, std::uint16_t port) {
  return {{pid, geteuid()}, {port, "127.0.0.1", 77, geteuid(), 0}};
}
/// Answers with the first line of the request.
void echo(RasConnection& client) { client.say(client.line()); }

TEST(DebugDoor, GivesTheConnectionToTheClient) {
  const RasServer server(echo);
  DebugDoor door(kRealClock);
  door.found({debug_holder(42, server.port())});
  EXPECT_EQ(door.processes(), (std::vector<Process>{{42, geteuid()}}));
  EXPECT_FALSE(door.connection(42)) << "no order";
  ASSERT_TRUE(door.ask(42, kDebugOrder, {}));
  EXPECT_EQ(door.ask(42, kDebugOrder, {}).error().message(), "another request for it is under way");
  EXPECT_EQ(door.progress(42).stage, Stage::taken);
  EXPECT_EQ(door.owner(42), geteuid());
  const Descriptor connection = door.connection(42);
  ASSERT_TRUE(connection);
  EXPECT_FALSE(door.connection(42)) << "it is the client's";
  pollfd ready{connection.number(), POLLOUT, 0};
  ASSERT_EQ(poll(&ready, 1, 10'000), 1);
  const std::string request = debug_request(kDebugOrder.extent.duration);
  ASSERT_EQ(send(connection.number(), request.data(), request.size(), 0), std::ssize(request));
  ready.events = POLLIN;
  ASSERT_EQ(poll(&ready, 1, 10'000), 1);
  std::array<char, 200> bytes{};
  const ssize_t got = recv(connection.number(), bytes.data(), bytes.size(), 0);
  EXPECT_EQ(std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))),
            "POST /handler/torch_profile?duration=1.500 HTTP/1.1\r");
  door.ended(42, "");
  EXPECT_EQ(door.progress(42).stage, Stage::done);
  door.ended(42, "too late");
  EXPECT_EQ(door.progress(42).stage, Stage::done);
  door.release(42);
  EXPECT_EQ(door.progress(42).stage, Stage::none);
  EXPECT_EQ(door.file_of(kDebugOrder, 42, 7), "/tmp/gpumeter_bert_77_42.json");
}

TEST(DebugDoor, NamesAUnixSocketInPlaceOfAConnection) {
  DebugDoor door(kRealClock, {}, true);
  door.found({{{42, 1000}, {}, "/run/a.sock", false}, {{43, 1000}, {}, "/run/b.sock", true}});
  ASSERT_TRUE(door.ask(42, kDebugOrder, {}));
  EXPECT_EQ(door.socket(42), "/run/a.sock");
  EXPECT_FALSE(door.connection(42));
  EXPECT_EQ(door.progress(42).stage, Stage::taken);
  EXPECT_FALSE(door.serves_conditions(42)) << "the daemon may not connect";
  EXPECT_TRUE(door.serves_conditions(43));
  EXPECT_EQ(door.socket(44), "");
}

TEST(DebugDoor, ReportsWhatTheClientReports) {
  const RasServer server(echo);
  DebugDoor door(kRealClock);
  door.found({debug_holder(42, server.port())});
  ASSERT_TRUE(door.ask(42, kDebugOrder, {}));
  door.ended(42, "no space");
  EXPECT_EQ(door.progress(42).stage, Stage::failed);
  EXPECT_EQ(door.progress(42).why, "no space");
  door.ended(43, "no such order");
  EXPECT_EQ(door.progress(43).stage, Stage::none);
}

TEST(DebugDoor, RefusesWhatTheServerLacks) {
  DebugDoor door(kRealClock, [](const tcp::Listener& listener) -> Result<Done> {
    if (listener.port == 2) return Error("port 2 has another owner");
    return Done{};
  });
  EXPECT_EQ(door.ask(42, kDebugOrder, {}).error().message(), "it no longer listens on its port");
  door.found({debug_holder(42, 1), debug_holder(43, 2)});
  EXPECT_EQ(door.ask(42, {"/tmp/x.json", {10U, milliseconds(1)}}, {}).error().message(),
            "PyTorch's debug server counts no steps; ask for seconds");
  EXPECT_EQ(door.ask(43, kDebugOrder, {}).error().message(), "port 2 has another owner");
  EXPECT_FALSE(door.serves_conditions(42)) << "there is no folder";
}

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";

class DebugDoorFetch : public testing::Test {
 protected:
  /// Begins with a server that sends `bytes` and leaves the connection open.
  void begin(std::string bytes) {
    server_.emplace([bytes = std::move(bytes)](RasConnection& client) {
      client.line();  // of the request
      client.say(bytes);
      while (!client.stops() && !client.line().empty()) {
      }
    });
    door_.release(42);
    door_.found({debug_holder(42, server_->port())});
    ASSERT_TRUE(door_.ask(42, order(), {}));
    door_.fetch(42, order());
  }
  Order order() const { return {tree_ / "traces/gpumeter_bert.json", {std::nullopt, milliseconds(20)}}; }
  std::string path() const { return tree_ / "traces/gpumeter_bert_42.json"; }

  const Tree tree_ = make_tree({});
  std::optional<RasServer> server_;
  DebugDoor door_{kRealClock, {}, true};
};

TEST_F(DebugDoorFetch, WritesATrace) {
  begin(std::string(kAnswer) + "trace");
  EXPECT_EQ(ended(door_, 42).stage, Stage::done);
  std::ostringstream text;
  text << std::ifstream(path()).rdbuf();
  EXPECT_EQ(text.str(), "trace");
}

TEST_F(DebugDoorFetch, ReportsAServerThatRefusesOrOffersTooMuch) {
  begin("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(ended(door_, 42).why, "the process answers with HTTP status 404");
  begin("HTTP/1.1 200 OK\r\nContent-Length: 536870913\r\n\r\n");
  EXPECT_EQ(ended(door_, 42).why, "the trace has 536870913 bytes, more than 536870912");
  door_.found({{{43, geteuid()}, {}, tree_ / "none.sock", true}});
  ASSERT_TRUE(door_.ask(43, order(), {}));
  door_.fetch(43, order());
  EXPECT_EQ(ended(door_, 43).why, tree_ / "none.sock" + ": No such file or directory");
}

TEST_F(DebugDoorFetch, AProcessThatStallsIsGivenUp) {
  begin(std::string(kAnswer) + "tr");
  while (!std::filesystem::exists(path())) std::this_thread::sleep_for(milliseconds(1));
  door_.release(42);
  while (std::filesystem::exists(path())) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(door_.progress(42).stage, Stage::none);
}

}  // namespace
}  // namespace gpumeter::profiles

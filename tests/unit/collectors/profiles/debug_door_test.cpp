#include "collectors/profiles/debug_door.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/fakes/ras_server.hpp"

namespace gpumeter::profiles {
namespace {

using std::chrono::milliseconds;

const Order kOrder = {"/tmp/gpumeter_bert_77.json", {std::nullopt, milliseconds(1500)}};

PortHolder holder(int pid, std::uint16_t port) {
  return {{pid, 1000}, {port, "127.0.0.1", 77, 1000, 0}, true};
}
/// Answers with the first line of the request.
void echo(RasConnection& client) { client.say(client.line()); }

TEST(DebugDoor, GivesTheConnectionToTheClient) {
  const RasServer server(echo);
  DebugDoor door;
  door.found({holder(42, server.port())});
  EXPECT_EQ(door.processes(), (std::vector<Process>{{42, 1000}}));
  EXPECT_FALSE(door.connection(42)) << "no order";
  ASSERT_TRUE(door.ask(42, kOrder, {}));
  EXPECT_EQ(door.ask(42, kOrder, {}).error().message(), "another request for it is under way");
  EXPECT_EQ(door.progress(42).stage, Stage::taken);
  EXPECT_EQ(door.owner(42), 1000U);
  const Descriptor connection = door.connection(42);
  ASSERT_TRUE(connection);
  EXPECT_FALSE(door.connection(42)) << "it is the client's";
  pollfd ready{connection.number(), POLLOUT, 0};
  ASSERT_EQ(poll(&ready, 1, 10'000), 1);
  const std::string request = debug_request(kOrder.extent.duration);
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
  EXPECT_EQ(door.file_of(kOrder, 42, 7), "/tmp/gpumeter_bert_77_42.json");
}

TEST(DebugDoor, NamesAUnixSocketInPlaceOfAConnection) {
  DebugDoor door({}, true);
  door.found({{{42, 1000}, {}, true, "/run/a.sock", false}, {{43, 1000}, {}, true, "/run/b.sock", true}});
  ASSERT_TRUE(door.ask(42, kOrder, {}));
  EXPECT_EQ(door.socket(42), "/run/a.sock");
  EXPECT_FALSE(door.connection(42));
  EXPECT_EQ(door.progress(42).stage, Stage::taken);
  EXPECT_FALSE(door.serves_conditions(42)) << "the daemon may not connect";
  EXPECT_TRUE(door.serves_conditions(43));
  EXPECT_EQ(door.socket(44), "");
}

TEST(DebugDoor, ReportsWhatTheClientReports) {
  const RasServer server(echo);
  DebugDoor door;
  door.found({holder(42, server.port())});
  ASSERT_TRUE(door.ask(42, kOrder, {}));
  door.ended(42, "no space");
  EXPECT_EQ(door.progress(42).stage, Stage::failed);
  EXPECT_EQ(door.progress(42).why, "no space");
  door.ended(43, "no such order");
  EXPECT_EQ(door.progress(43).stage, Stage::none);
}

TEST(DebugDoor, RefusesWhatTheServerLacks) {
  DebugDoor door([](const tcp::Listener& listener) -> Result<Done> {
    if (listener.port == 2) return Error("port 2 has another owner");
    return Done{};
  });
  EXPECT_EQ(door.ask(42, kOrder, {}).error().message(), "it no longer listens on its port");
  door.found({holder(42, 1), holder(43, 2)});
  EXPECT_EQ(door.ask(42, {"/tmp/x.json", {10U, milliseconds(1)}}, {}).error().message(),
            "PyTorch's debug server counts no steps; ask for seconds");
  EXPECT_EQ(door.ask(43, kOrder, {}).error().message(), "port 2 has another owner");
  EXPECT_FALSE(door.serves_conditions(42)) << "there is no folder";
}

}  // namespace
}  // namespace gpumeter::profiles

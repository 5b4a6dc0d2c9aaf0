#include "collectors/nccl/files/flight_dump.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/fakes/places.hpp"

namespace gpumeter::nccl {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream file(places::in_tests("fixtures/nccl/flight_recorder/" + name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const Result<FlightDump>& dump) {
  if (!dump) return dump.error().message();
  std::string out;
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : "-"; };
  for (const FlightDump::Group& group : dump->groups) {
    out += group.name + " '" + group.description + "' " + number(group.enqueued) + " " +
           number(group.started) + " " + number(group.completed) + "\n";
  }
  return out;
}

std::string json(const std::string& status, const std::string& entries) {
  return "{\"entries\":[" + entries + "],\"pg_config\":{},\"pg_status\":{" + status +
         "},\"version\":\"2.10\"}";
}

// Dumps of PyTorch 2.15.0: rank 2 has not launched the seventh operation.
TEST(FlightDump, ReadsThePicklesOfPyTorch) {
  EXPECT_EQ(text_of(parse_flight_dump(fixture("rank_0.pickle"))), "0 'default_pg' 7 - 6\n1 '' 2 - 2\n");
  EXPECT_EQ(text_of(parse_flight_dump(fixture("rank_2.pickle"))), "0 'default_pg' 6 - 6\n");
}

TEST(FlightDump, ReadsThePicklesOfPython) {
  EXPECT_EQ(text_of(parse_flight_dump(fixture("rank_0_protocol_5.pickle"))),
            text_of(parse_flight_dump(fixture("rank_0.pickle"))));
}

TEST(FlightDump, ReadsTheJsonOfPyTorch) {
  EXPECT_EQ(text_of(parse_flight_dump(fixture("rank_1.json"))), "0 'default_pg' 7 - 6\n1 '' 2 - 2\n");
}

// Two ranks count their groups differently: the entries have the names.
TEST(FlightDump, NamesAGroupByItsEntries) {
  const std::string entry = "{\"pg_id\":3,\"process_group\":[\"17\",\"mesh_dp\"]}";
  EXPECT_EQ(text_of(parse_flight_dump(
                json("\"3\":{\"last_enqueued_collective\":\"9\",\"last_started_collective\":\"8\","
                     "\"last_completed_collective\":7},\"4\":{\"last_enqueued_collective\":\"1\"}",
                     entry))),
            "17 'mesh_dp' 9 8 7\n");
}

TEST(FlightDump, MinusOneIsAbsent) {
  EXPECT_EQ(text_of(parse_flight_dump(
                json("\"0\":{\"last_enqueued_collective\":\"1\",\"last_completed_collective\":\"-1\"}",
                     "{\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"]}"))),
            "0 'default_pg' 1 - -\n");
}

TEST(FlightDump, NamesWhatIsMissing) {
  EXPECT_EQ(text_of(parse_flight_dump("{\"version\":\"2.1\"}")),
            "the dump has no pg_status, as those of PyTorch before 2.4");
  EXPECT_EQ(text_of(parse_flight_dump("\x80\x02}.")),
            "the dump has no pg_status, as those of PyTorch before 2.4");
  EXPECT_EQ(text_of(parse_flight_dump(json("\"0\":{\"last_enqueued_collective\":\"1\"}", ""))),
            "the dump has no process group with a name and a last operation");
  EXPECT_EQ(text_of(parse_flight_dump("{\"pg_status\":{")), "the dump is no complete JSON document");
  EXPECT_EQ(text_of(parse_flight_dump("\x80\x02"
                                      "cos\nsystem\n.")),
            "byte 2: opcode GLOBAL is refused, only data is read");
}

TEST(FlightDump, EveryCutIsAnErrorAndNotACrash) {
  for (const char* name : {"rank_0.pickle", "rank_0_protocol_5.pickle", "rank_1.json"}) {
    const std::string whole = fixture(name);
    ASSERT_GT(whole.size(), 1000U) << name;
    for (std::size_t length = 0; length < whole.size(); ++length) {
      EXPECT_FALSE(parse_flight_dump(std::string_view(whole).substr(0, length))) << name << ' ' << length;
    }
  }
}

TEST(FlightDump, HasAtMost16Groups) {
  std::string status, entries;
  for (int id = 0; id < 20; ++id) {
    const std::string number = std::to_string(id);
    status += (id > 0 ? "," : "") + ("\"" + number) + "\":{\"last_enqueued_collective\":\"1\"}";
    entries +=
        (id > 0 ? "," : "") + ("{\"pg_id\":" + number) + ",\"process_group\":[\"g" + number + "\",\"\"]}";
  }
  const Result<FlightDump> dump = parse_flight_dump(json(status, entries));
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->groups.size(), 16U);
}

}  // namespace
}  // namespace gpumeter::nccl

#include "collectors/simulated/event.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/text.hpp"

namespace gpumeter::simulated {
namespace {

using namespace std::chrono_literals;
using Kind = Event::Kind;

auto fields(const Event& event) { return std::tuple(event.kind, event.device, event.begin, event.end); }

std::string error_of(std::string_view text, int device_count = 2) {
  const Result<Event> event = parse_event(text, device_count);
  return event ? "no error" : event.error().message();
}

constexpr auto kForEver = Nanoseconds::max();

TEST(SimulatedEvent, HasAnEndOrNone) {
  EXPECT_EQ(fields(*parse_event("hang 1 after 5s", 2)), std::tuple(Kind::hang, 1, Nanoseconds(5s), kForEver));
  EXPECT_EQ(fields(*parse_event("lose 0 after 500ms for 2m", 1)),
            std::tuple(Kind::lose, 0, Nanoseconds(500ms), Nanoseconds(120s + 500ms)));
  EXPECT_EQ(fields(*parse_event("  overheat 7  after 0s for 1.5s ", 8)),
            std::tuple(Kind::overheat, 7, Nanoseconds(0), Nanoseconds(1500ms)));
  EXPECT_EQ(fields(*parse_event("throttle 0 after 1h", 2)),
            std::tuple(Kind::throttle, 0, Nanoseconds(1h), kForEver));
}

TEST(SimulatedEvent, SomeVerbsHaveACode) {
  EXPECT_EQ(parse_event("xid:79 0 after 1s", 1)->code, 79);
  EXPECT_EQ(parse_event("recovery:reboot 0 after 1s", 1)->code, 2);
  EXPECT_EQ(parse_event("ecc 0 after 1s", 1)->code, 0);
}

// Verbs with a code are listed with its kind: "xid:CODE".
TEST(SimulatedEvent, EveryListedVerbIsOne) {
  std::string_view verbs = kVerbList;
  for (int kind = 0; !verbs.empty(); ++kind) {
    std::string verb(trimmed(take_until(verbs, ',')));
    if (verb == "xid:CODE") verb = "xid:13";
    if (verb == "recovery:ACTION") verb = "recovery:reset";
    const Result<Event> event = parse_event(verb + " 0 after 1s", 1);
    ASSERT_TRUE(event) << event.error().message();
    EXPECT_EQ(static_cast<int>(event->kind), kind) << verb;
  }
}

TEST(SimulatedEvent, AnErrorNamesTheTextAndWhatWouldBeRight) {
  const std::string form =
      R"(must be "VERB DEVICE after TIME [for TIME]", such as "lose 0 after 30s for 10s")";
  EXPECT_EQ(error_of(""), R"(event "": )" + form);
  EXPECT_EQ(error_of("hang 0"), R"(event "hang 0": )" + form);
  EXPECT_EQ(error_of("hang 0 in 5s"), R"(event "hang 0 in 5s": )" + form);
  EXPECT_EQ(error_of("hang 0 after 5s until 6s"), R"(event "hang 0 after 5s until 6s": )" + form);
  EXPECT_EQ(error_of("melt 0 after 5s"),
            R"(event "melt 0 after 5s": unknown verb "melt"; must be one of )" + std::string(kVerbList));
  EXPECT_EQ(
      error_of("lose:79 0 after 5s"),
      R"(event "lose:79 0 after 5s": unknown verb "lose:79"; must be one of )" + std::string(kVerbList));
  EXPECT_EQ(error_of("xid:x 0 after 5s"),
            R"(event "xid:x 0 after 5s": no XID "x"; must be a number from 1 to 9999, such as xid:79)");
  EXPECT_EQ(error_of("xid 0 after 5s"),
            R"(event "xid 0 after 5s": no XID ""; must be a number from 1 to 9999, such as xid:79)");
  EXPECT_EQ(error_of("recovery:melt 0 after 5s"),
            R"(event "recovery:melt 0 after 5s": no recovery action "melt"; )"
            "must be none, reset, reboot, drain_p2p or drain_and_reset, such as recovery:reset");
  EXPECT_EQ(error_of("hang 0 after 5"), R"(event "hang 0 after 5": "5" is not a duration; must be )"
                                        "a number with its unit, such as 500ms, 5s or 1m30s");
  EXPECT_EQ(error_of("hang 0 after 5s for ever"),
            R"(event "hang 0 after 5s for ever": "ever" is not a duration; )"
            "must be a number with its unit, such as 500ms, 5s or 1m30s");
}

TEST(SimulatedEvent, ADeviceThatIsNotThereIsAnError) {
  EXPECT_EQ(error_of("hang 2 after 5s"), R"(event "hang 2 after 5s": no device "2"; must be 0 to 1)");
  EXPECT_EQ(error_of("hang -1 after 5s"), R"(event "hang -1 after 5s": no device "-1"; must be 0 to 1)");
  EXPECT_EQ(error_of("hang 0x after 5s"), R"(event "hang 0x after 5s": no device "0x"; must be 0 to 1)");
  EXPECT_EQ(error_of("hang 1 after 5s", 1), R"(event "hang 1 after 5s": no device "1"; must be 0)");
}

TEST(SimulatedTimeline, KnowsWhatHoldsAndWhatWas) {
  const Event events[] = {
      {Kind::lose, 1, 10s, 20s}, {Kind::lose, 0, 0s, 90s}, {Kind::lose, 1, 30s, kForEver}};
  const Timeline timeline(events, 1);
  const auto at = [&](Nanoseconds time) {
    return std::tuple(timeline.holds(Kind::lose, time), timeline.begun(Kind::lose, time),
                      timeline.over(Kind::lose, time), timeline.held_seconds(Kind::lose, time));
  };
  using Was = std::tuple<bool, std::size_t, std::size_t, double>;
  EXPECT_EQ(at(10s - 1ns), Was(false, 0, 0, 0));
  EXPECT_EQ(at(10s), Was(true, 1, 0, 0));
  EXPECT_EQ(at(20s), Was(false, 1, 1, 10));
  EXPECT_EQ(at(40s), Was(true, 2, 1, 20));
  EXPECT_EQ(timeline.last(Kind::lose, 10s - 1ns), nullptr);
  EXPECT_EQ(timeline.last(Kind::lose, 24h)->begin, 30s);
  EXPECT_FALSE(timeline.holds(Kind::hang, 10s));
}

}  // namespace
}  // namespace gpumeter::simulated

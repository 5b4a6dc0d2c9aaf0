#include "exporter/http/event_stream.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/event_ledger.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/web/live_answers.hpp"
#include "tests/fakes/fake_clock.hpp"

// What a reader of a stream gets, and when: events, pictures of the live values, and comments.

namespace gpumeter {
namespace {

using std::chrono::seconds;

struct Request {
  int pauses = 0, resumptions = 0;
};

constexpr Pausing kPausing{[](void* request) noexcept { ++static_cast<Request*>(request)->pauses; },
                           [](void* request) noexcept { ++static_cast<Request*>(request)->resumptions; }};

struct EventStreamTest : testing::Test {
  EventStreamTest() {
    machine.events = std::make_shared<EventLedger>(clock);
    for (EventStream* each : {&stream, &events}) each->attach(&request, nullptr, kPausing);
  }
  /// All that can be read now.
  static std::string read(EventStream& from, std::size_t most = 4096) {
    std::string text, bytes(most, ' ');
    for (ssize_t size = 0; (size = from.read(bytes.data(), most)) > 0;)
      text.append(bytes, 0, std::size_t(size));
    return text;
  }
  void happens(std::uint64_t code) {
    machine.events->note({.time = clock.realtime(), .source = "nvml", .kind = "xid", .code = code});
  }
  /// A second passes, with the samples of the history.
  void second_passes() {
    clock.advance(seconds(1));
    live.refresh();
  }
  /// The answer of /api/v1/live as a message.
  std::string picture() {
    std::string text = "event: picture\ndata: ";
    for (const char byte : *live.live().identity)
      text += byte == '\n' ? std::string("\ndata: ") : std::string(1, byte);
    return text.substr(0, text.size() - std::string("data: ").size()) + "\n";
  }

  FakeClock clock;
  Store store;
  History history{store, clock};
  Machine machine;
  LiveAnswers live{history, clock, machine.health};
  EventStream stream{machine, clock, 0, &live}, events{machine, clock, 0, nullptr};
  Request request;
};

TEST_F(EventStreamTest, SendsAPictureAfterEachSecondsSamples) {
  EXPECT_EQ(read(stream), "retry: 2000\n\n") << "no picture yet: a reader never waits for one to be made";
  EXPECT_EQ(request.pauses, 1);
  for (int i = 1; i <= 3; ++i) {
    stream.look();
    EXPECT_EQ(request.resumptions, i - 1) << "there is nothing new";
    second_passes();
    stream.look();
    EXPECT_EQ(request.resumptions, i);
    EXPECT_EQ(read(stream), picture());
  }
}

TEST_F(EventStreamTest, AllReadersShareAPicturesBytes) {
  static_cast<void>(live.newest_message());
  second_passes();
  const SharedBytes bytes = live.newest_message();
  EXPECT_EQ(live.newest_message(), bytes);
  EXPECT_EQ(read(stream), "retry: 2000\n\n" + *bytes);
  for (int i = 0; i < 5; ++i) second_passes();
  EXPECT_EQ(live.newest_message(), nullptr) << "pictures that nobody asks for are not made";
}

TEST_F(EventStreamTest, ASlowReaderGetsAWholePictureAndThenTheNewest) {
  EXPECT_EQ(read(stream), "retry: 2000\n\n");
  second_passes();
  stream.look();
  const std::string first = picture();
  std::string bytes(10, ' ');
  EXPECT_EQ(stream.read(bytes.data(), bytes.size()), 10);
  for (int i = 0; i < 2; ++i) {
    second_passes();
    EXPECT_NE(live.newest_message(), nullptr);
  }
  EXPECT_EQ(bytes + read(stream, 7), first + picture());
}

TEST_F(EventStreamTest, EventsComeBeforePicturesAndEachOnce) {
  happens(79);
  EXPECT_TRUE(read(stream).starts_with("retry: 2000\n\nid: "));
  happens(31);
  second_passes();
  stream.look();
  const std::string text = read(stream);
  EXPECT_NE(text.find("\"code\":31,"), std::string::npos);
  EXPECT_EQ(text.find("\"code\":79,"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n\n" + picture())) << text;
}

TEST_F(EventStreamTest, AReaderOfEventsGetsNoPicturesAndACommentEvery15Seconds) {
  EXPECT_EQ(read(events), "retry: 2000\n\n");
  for (int i = 0; i < 14; ++i) second_passes();
  events.look();
  EXPECT_EQ(request.resumptions, 0);
  second_passes();
  events.look();
  EXPECT_EQ(read(events), ":\n\n");
  events.end();
  EXPECT_EQ(request.resumptions, 2);
  char byte = 0;
  EXPECT_EQ(events.read(&byte, 1), EventStream::kEnd);
}

TEST_F(EventStreamTest, TheNumberOfStreamsIsLimitedForAPeerAndForAll) {
  EventStreams streams;
  std::vector<std::shared_ptr<EventStream>> open;
  const auto opens = [&](const std::string& peer) {
    open.push_back(std::make_shared<EventStream>(machine, clock, 0, nullptr));
    return streams.add(open.back(), peer, nullptr);
  };
  for (std::size_t i = 0; i < EventStreams::kMostOfPeer; ++i) EXPECT_TRUE(opens("a"));
  EXPECT_FALSE(opens("a"));
  for (std::size_t i = EventStreams::kMostOfPeer; i < EventStreams::kMost; ++i) EXPECT_TRUE(opens("b"));
  EXPECT_FALSE(opens("b"));
  open.erase(open.begin());
  EXPECT_TRUE(opens("b")) << "a client has left";
  streams.close();
  open.clear();
  EXPECT_FALSE(opens("c")) << "the server stops";
}

}  // namespace
}  // namespace gpumeter

#include "collectors/grpc/call.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/http2_frames.hpp"

namespace gpumeter::grpc {
namespace {

using namespace http2;

Request request(std::size_t most_messages = 1) {
  Request made{.method = "/v1.PodResourcesLister/List", .message = "q"};
  made.most_bytes = 100;
  made.most_messages = most_messages;
  return made;
}

/// A call that has sent its request.
class Asked {
 public:
  explicit Asked(std::size_t most_messages = 1) : stream(request(most_messages)) {
    sent = stream.take_output();
  }

  Outcome after(const std::string& bytes) {
    stream.feed(bytes);
    stream.take_output();
    return stream.outcome();
  }

  Stream stream;
  std::string sent;
};

Failure failure_after(const std::string& bytes) {
  Asked call;
  const Outcome outcome = call.after(settings() + bytes);
  EXPECT_TRUE(call.stream.has_ended());
  return outcome.failure;
}

TEST(StreamTest, SendsThePrefaceAndTheRequestWithItsPrefix) {
  const Asked call;
  EXPECT_TRUE(call.sent.starts_with("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
  EXPECT_TRUE(call.sent.ends_with(std::string("\0\0\0\0\1q", 6)));
}

TEST(StreamTest, ReadsAnAnswerThatArrivesByteByByte) {
  Asked call;
  const std::string answer = settings() + headers() + data_frame(prefixed("pods").substr(0, 3)) +
                             data_frame(prefixed("pods").substr(3)) + trailers("0");
  for (const char byte : answer) call.stream.feed({&byte, 1});

  EXPECT_TRUE(call.stream.has_ended());
  EXPECT_EQ(call.stream.outcome(), Outcome{});
  EXPECT_EQ(call.stream.take_message(), "pods");
  EXPECT_EQ(call.stream.take_message(), std::nullopt);
}

TEST(StreamTest, AStreamHasAnyNumberOfMessagesAlsoEmptyOnes) {
  Asked call(0);
  call.after(settings() + headers() + data_frame(prefixed("a") + prefixed("") + prefixed("b")));
  EXPECT_FALSE(call.stream.has_ended());
  EXPECT_EQ(call.stream.take_message(), "a");
  EXPECT_EQ(call.stream.take_message(), "");
  EXPECT_EQ(call.stream.take_message(), "b");
}

TEST(StreamTest, AnswersAPingWithItsBytes) {
  Asked call;
  call.stream.feed(settings() + frame(6, 0, 0, "8 bytes!"));
  EXPECT_NE(call.stream.take_output().find(frame(6, 1, 0, "8 bytes!")), std::string::npos);
  EXPECT_FALSE(call.stream.has_ended());
}

TEST(StreamTest, AStatusIsTheReason) {
  EXPECT_EQ(failure_after(trailers_only("8", "rejected by rate limit")), Failure::rate_limited);
  EXPECT_EQ(failure_after(trailers_only("9")), Failure::not_ready);
  EXPECT_EQ(failure_after(trailers_only("14")), Failure::not_ready);
  EXPECT_EQ(failure_after(trailers_only("12")), Failure::unimplemented);
  EXPECT_EQ(failure_after(trailers_only("7")), Failure::refused);
  EXPECT_EQ(failure_after(trailers_only("no number")), Failure::refused);
  EXPECT_EQ(failure_after(frame(1, 5, 1, "\x8d")), Failure::unavailable);  // :status 404
}

TEST(StreamTest, KeepsAReadableMessageOfTheServer) {
  Asked call;
  EXPECT_EQ(call.after(settings() + trailers_only("9",
                                                  "not\x80"
                                                  "yet"))
                .message,
            "status 9: not\xEF\xBF\xBDyet");
}

TEST(StreamTest, AResetAndAGoawayEndTheCall) {
  EXPECT_EQ(failure_after(frame(3, 0, 1, std::string("\0\0\0\x8", 4))), Failure::unavailable);  // CANCEL
  EXPECT_EQ(failure_after(frame(7, 0, 0, std::string("\0\0\0\0\0\0\0\0", 8))), Failure::unavailable);
}

TEST(StreamTest, AMessageThatIsTooLongOrCompressedOrIncompleteIsMalformed) {
  EXPECT_EQ(failure_after(headers() + data_frame(std::string("\0\0\0\0\x65", 5))), Failure::malformed);
  EXPECT_EQ(failure_after(headers() + data_frame(std::string("\0\xFF\xFF\xFF\xFF", 5))), Failure::malformed);
  EXPECT_EQ(failure_after(headers() + data_frame(std::string("\1\0\0\0\1x", 6))), Failure::malformed);
  EXPECT_EQ(failure_after(headers() + data_frame(prefixed("pods").substr(0, 6)) + trailers("0")),
            Failure::malformed);
  EXPECT_EQ(failure_after(headers() + data_frame(prefixed("a") + prefixed("b"))), Failure::malformed);
  EXPECT_EQ(failure_after(headers() + trailers("0")), Failure::malformed);  // no message
  EXPECT_EQ(failure_after("HTTP/1.1 400 Bad Request\r\n\r\n"), Failure::malformed);
}

TEST(StreamTest, AFloodOfPingsWithoutReadingEndsTheCall) {
  Asked call;
  std::string flood = settings();
  for (int i = 0; i < 3000; ++i) flood += frame(6, 0, 0, "8 bytes!");
  call.stream.feed(flood);
  EXPECT_EQ(call.stream.outcome().failure, Failure::malformed);
}

}  // namespace
}  // namespace gpumeter::grpc

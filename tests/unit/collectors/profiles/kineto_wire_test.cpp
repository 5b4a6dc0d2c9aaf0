#include "collectors/profiles/kineto_wire.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gpumeter::profiles {
namespace {

std::string header(std::uint64_t size, std::string_view type) {
  std::string bytes(kineto::kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  type.copy(bytes.data() + sizeof size, type.size());
  return bytes;
}

std::string request(std::int32_t type, std::int32_t count, std::size_t numbers) {
  std::string payload(16 + 4 * numbers, '\0');
  std::memcpy(payload.data(), &type, sizeof type);
  std::memcpy(payload.data() + 4, &count, sizeof count);
  return header(payload.size(), "req") + payload;
}

TEST(KinetoWire, ReadsWhatKinetoSends) {
  // The datagrams of a process 1707 with SLURM_JOB_ID=4242.
  const auto context = kineto::parse(header(16, "ctxt") + std::string(16, '\1'));
  ASSERT_TRUE(context);
  EXPECT_EQ(context->kind, kineto::Message::Kind::context);
  for (const auto& [type, is_free] : {std::pair{2, true}, {3, true}, {0, false}, {1, false}}) {
    const auto message = kineto::parse(request(type, 3, 3));
    ASSERT_TRUE(message) << type;
    EXPECT_EQ(message->kind, kineto::Message::Kind::request);
    EXPECT_EQ(message->is_free, is_free) << type;
  }
}

TEST(KinetoWire, RejectsSizesThatDoNotAgree) {
  const std::string good = request(2, 1, 1);
  EXPECT_TRUE(kineto::parse(good));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(kineto::parse(good.substr(0, size)));
  EXPECT_FALSE(kineto::parse(good + "x"));
  EXPECT_FALSE(kineto::parse(request(2, 2, 1)));
  EXPECT_FALSE(kineto::parse(request(2, -1, 1)));
  EXPECT_FALSE(kineto::parse(request(2, 0, 0)));
  EXPECT_FALSE(kineto::parse(header(std::uint64_t{1} << 63U, "req") + std::string(20, '\0')));
  EXPECT_FALSE(kineto::parse(header(15, "ctxt") + std::string(15, '\0')));
  EXPECT_FALSE(kineto::parse(header(20, "requ") + std::string(20, '\0')));
}

TEST(KinetoWire, AnswersHaveTheirTrueSize) {
  EXPECT_EQ(kineto::answer(""), header(0, "req"));
  EXPECT_EQ(kineto::answer("A=1\n"), header(4, "req") + "A=1\n");
  EXPECT_EQ(kineto::answer_context(3), header(4, "ctxt") + std::string("\3\0\0\0", 4));
}

TEST(KinetoWire, WritesAnOrder) {
  EXPECT_EQ(
      kineto::text_of({"/tmp/x.json", {std::nullopt, std::chrono::milliseconds(1500)}},
                      std::chrono::seconds(1700000000)),
      "ACTIVITIES_LOG_FILE=/tmp/x.json\nACTIVITIES_WARMUP_PERIOD_SECS=1\nPROFILE_START_TIME=1700000004000\n"
      "ACTIVITIES_DURATION_MSECS=1500\n");
  EXPECT_EQ(kineto::text_of({"/tmp/x.json", {3, std::chrono::seconds(5)}}, Nanoseconds(0)),
            "ACTIVITIES_LOG_FILE=/tmp/x.json\nACTIVITIES_WARMUP_PERIOD_SECS=1\nPROFILE_START_ITERATION=0\n"
            "PROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS=3\nACTIVITIES_DURATION_MSECS=5000\n");
  EXPECT_EQ(kineto::file_of("/tmp/x.json", 12), "/tmp/x_12.json");
}

TEST(KinetoWire, RejectsPathsThatKinetoCannotRead) {
  EXPECT_TRUE(kineto::check_path("/tmp/traces/x.json"));
  for (const char* path : {"", "tmp/x", "/tmp/a=b", "/tmp/#x", "/tmp/../etc/x", "/tmp/a b", "/tmp/a\nB=1"}) {
    EXPECT_FALSE(kineto::check_path(path)) << path;
  }
  EXPECT_FALSE(kineto::check_path("/" + std::string(400, 'x')));
}

}  // namespace
}  // namespace gpumeter::profiles

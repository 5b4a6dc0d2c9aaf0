#include "exporter/access/access.hpp"

#include <crypt.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gpumeter {
namespace {

using Verdict = Admission::Verdict;

constexpr Pausing kPausing = {
    [](void*) noexcept {}, [](void* resumed) noexcept { *static_cast<std::atomic<bool>*>(resumed) = true; }};

std::shared_ptr<const WebGeneration> generation(WebSettings settings) {
  return std::make_shared<const WebGeneration>(WebGeneration{std::move(settings), nullptr});
}

WebSettings with_dave() {
  crypt_data data{};
  WebSettings settings;
  settings.users["dave"] = crypt_r("dave123", "$2y$04$abcdefghijklmnopqrstuu", &data);
  settings.headers = {{"X-Frame-Options", "deny"}};
  return settings;
}

/// The admission of a request after its password is checked.
Admission admit(WebAccess& access, std::optional<std::string_view> authorization) {
  std::atomic<bool> resumed = false;
  const Admission first = access.admit({&resumed, authorization}, kPausing);
  if (first.verdict != Verdict::waits) return first;
  while (!resumed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return access.admit({&resumed, authorization, true}, kPausing);
}

constexpr const char* kDave = "Basic ZGF2ZTpkYXZlMTIz";
constexpr const char* kWrong = "Basic ZGF2ZTpkYXZlMTI0";

TEST(WebAccess, AdmitsAllWithoutUsers) {
  const SystemClock clock;
  WebAccess access(clock, generation({}));
  EXPECT_EQ(admit(access, std::nullopt).verdict, Verdict::admitted);
  EXPECT_EQ(admit(access, "nonsense").verdict, Verdict::admitted);
}

TEST(WebAccess, AsksForAUserAndNamesTheHeaders) {
  const SystemClock clock;
  WebAccess access(clock, generation(with_dave()));
  ASSERT_TRUE(access.start());
  for (const auto& authorization : {std::optional<std::string_view>(), {"nonsense"}, {kWrong}}) {
    const Admission admission = admit(access, authorization);
    EXPECT_EQ(admission.verdict, Verdict::unauthorized);
    EXPECT_EQ(admission.generation, access.current());  // 401 has the configured headers
  }
  EXPECT_EQ(admit(access, kDave).verdict, Verdict::admitted);
  EXPECT_EQ(admit(access, kDave).generation->settings.headers, with_dave().headers);
}

TEST(WebAccess, LimitsTheRateBeforeAllElse) {
  const SystemClock clock;
  WebSettings settings = with_dave();
  settings.rate_limit = {std::chrono::hours(1), 2};
  WebAccess access(clock, generation(settings));
  ASSERT_TRUE(access.start());
  EXPECT_EQ(admit(access, kDave).verdict,
            Verdict::admitted);  // the request is resumed without a second token
  EXPECT_EQ(access.admit_unseen().verdict, Verdict::admitted);
  for (const char* authorization : {kDave, kWrong}) {
    const Admission admission = admit(access, authorization);
    EXPECT_EQ(admission.verdict, Verdict::rate_limited);
    EXPECT_EQ(admission.generation, nullptr);  // 429 has none
  }
  EXPECT_EQ(access.admit_unseen().verdict, Verdict::rate_limited);
}

TEST(WebAccess, ANewGenerationIsInForceAtOnce) {
  const SystemClock clock;
  WebAccess access(clock, generation(with_dave()));
  ASSERT_TRUE(access.start());
  EXPECT_EQ(admit(access, kDave).verdict, Verdict::admitted);
  WebSettings other = with_dave();
  other.users = {{"carol", other.users.begin()->second}};
  other.rate_limit = {std::chrono::hours(1), 0};  // that of the first generation stays in force
  access.replace(generation(other));
  EXPECT_EQ(admit(access, kDave).verdict, Verdict::unauthorized);
  EXPECT_EQ(admit(access, "Basic Y2Fyb2w6ZGF2ZTEyMw==").verdict, Verdict::admitted);
  access.replace(generation({}));
  EXPECT_EQ(admit(access, std::nullopt).verdict, Verdict::admitted);
}

// The next request on the same connection must not inherit the result of a check that nobody asked for.
TEST(WebAccess, AResultServesOneRequestOnly) {
  const SystemClock clock;
  WebAccess access(clock, generation(with_dave()));
  std::atomic<bool> resumed = false;
  EXPECT_EQ(access.admit({&resumed, kDave}, kPausing).verdict, Verdict::waits);
  access.replace(generation({}));
  ASSERT_TRUE(access.start());
  while (!resumed) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(access.admit({&resumed, kDave, true}, kPausing).verdict, Verdict::admitted);
  access.replace(generation(with_dave()));
  access.close();
  EXPECT_EQ(access.admit({&resumed, kWrong}, kPausing).verdict, Verdict::too_many);
}

TEST(WebAccess, TooManyChecksAreRefusedWithHeaders) {
  const SystemClock clock;
  WebAccess access(clock, generation(with_dave()));
  access.close();
  const Admission admission = access.admit({nullptr, kDave}, kPausing);
  EXPECT_EQ(admission.verdict, Verdict::too_many);
  EXPECT_EQ(admission.generation, access.current());
}

}  // namespace
}  // namespace gpumeter

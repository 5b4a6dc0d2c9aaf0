#include "exporter/access/access.hpp"

#include <crypt.h>
#include <gnutls/gnutls.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>

#include "tests/fakes/fake_clock.hpp"

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

/// How many of `asked` requests are admitted.
int admitted(WebAccess& access, int asked) {
  int count = 0;
  for (int i = 0; i < asked; ++i) count += access.admit_unseen().verdict == Verdict::admitted ? 1 : 0;
  return count;
}

std::shared_ptr<const WebGeneration> limited(RateLimit limit) {
  WebSettings settings;
  settings.rate_limit = limit;
  return generation(settings);
}

TEST(WebAccessRate, IsABucketThatStartsFull) {
  FakeClock clock;
  WebAccess access(clock, limited({std::chrono::milliseconds(500), 3}));
  EXPECT_EQ(admitted(access, 10), 3);
  clock.advance(std::chrono::milliseconds(499));
  EXPECT_EQ(admitted(access, 10), 0);
  clock.advance(std::chrono::milliseconds(2));
  EXPECT_EQ(admitted(access, 10), 1);
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(admitted(access, 10), 3);
}

TEST(WebAccessRate, RefusesAllWithoutBurstAndNoneWithoutInterval) {
  FakeClock clock;
  WebAccess none(clock, limited({std::chrono::seconds(1), 0}));
  EXPECT_EQ(admitted(none, 5), 0);
  clock.advance(std::chrono::hours(1));
  EXPECT_EQ(admitted(none, 5), 0);
  WebAccess off(clock, limited({}));
  EXPECT_EQ(admitted(off, 1000), 1000);
}

/// A request that counts how often it is paused and resumed.
struct Request {
  std::atomic<int> paused = 0;
  std::atomic<int> resumed = 0;
};

std::string hashed(const char* password, const char* cost = "04") {
  crypt_data data{};
  return crypt_r(password, ("$2y$" + std::string(cost) + "$abcdefghijklmnopqrstuu").c_str(), &data);
}

std::string basic(const std::string& user, const std::string& password) {
  const std::string text = user + ":" + password;
  const gnutls_datum_t plain{reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
                             static_cast<unsigned>(text.size())};
  gnutls_datum_t encoded{};
  EXPECT_EQ(gnutls_base64_encode2(&plain, &encoded), 0);
  std::string header = "Basic " + std::string(reinterpret_cast<char*>(encoded.data), encoded.size);
  gnutls_free(encoded.data);
  return header;
}

class WebAccessLogins : public testing::Test {
 protected:
  Verdict check(const std::string& user, const std::string& password, Request& request,
                const std::string& peer = "10.0.0.1") {
    constexpr Pausing kCounting = {[](void* to) noexcept { ++static_cast<Request*>(to)->paused; },
                                   [](void* to) noexcept { ++static_cast<Request*>(to)->resumed; }};
    const std::string header = basic(user, password);
    return access_.admit({&request, header, request.resumed > 0, peer}, kCounting).verdict;
  }
  void wait_for(const Request& request) {
    while (request.resumed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// The verdict of a request that may wait.
  Verdict verdict(const std::string& user, const std::string& password) {
    Request request;
    const Verdict first = check(user, password, request);
    if (first != Verdict::waits) return first;
    wait_for(request);
    EXPECT_EQ(request.paused, 1);
    return check(user, password, request);
  }
  /// As verdict(), for a result that must be known.
  Verdict known(const std::string& user, const std::string& password) {
    Request request;
    return check(user, password, request);
  }
  void apply() { access_.replace(generation({.tls = {}, .headers = {}, .users = users_, .rate_limit = {}})); }
  void SetUp() override { apply(); }

  const SystemClock clock_;
  std::map<std::string, std::string> users_ = {{"alice", hashed("alice123")}, {"dave", hashed("dave123")}};
  WebAccess access_{clock_, generation({})};
};

TEST_F(WebAccessLogins, ChecksEachPairOnce) {
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::admitted);
  EXPECT_EQ(verdict("dave", "alice123"), Verdict::unauthorized);
  EXPECT_EQ(verdict("nobody", "dave123"), Verdict::unauthorized);
  EXPECT_EQ(known("dave", "dave123"), Verdict::admitted);
  EXPECT_EQ(known("dave", "alice123"), Verdict::unauthorized);
  EXPECT_EQ(known("nobody", "dave123"), Verdict::unauthorized);
}

// exporter-toolkit's dummy hash has a password that everybody knows.
TEST_F(WebAccessLogins, TheDummyHashLetsNobodyIn) {
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(verdict("fakeuser", "fakepassword"), Verdict::unauthorized);
  EXPECT_EQ(known("fakeuser", "fakepassword"), Verdict::unauthorized);
}

TEST_F(WebAccessLogins, EqualRequestsShareOneCheck) {
  std::array<Request, 100> requests;
  for (Request& request : requests) EXPECT_EQ(check("dave", "dave123", request), Verdict::waits);
  Request other;
  EXPECT_EQ(check("alice", "alice123", other), Verdict::waits);
  ASSERT_TRUE(access_.start());
  wait_for(other);
  for (Request& request : requests) {
    wait_for(request);
    EXPECT_EQ(check("dave", "dave123", request), Verdict::admitted);
    EXPECT_EQ(request.resumed, 1);
  }
  EXPECT_EQ(check("alice", "alice123", other), Verdict::admitted);
}

TEST_F(WebAccessLogins, EightChecksWaitAndNoMore) {
  std::array<Request, WebAccess::kMostWaiting> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    EXPECT_EQ(check("dave", std::to_string(i), guesses[i]), Verdict::waits);
  }
  Request late;
  EXPECT_EQ(check("dave", "dave123", late), Verdict::too_many);
  EXPECT_EQ(late.paused, 0);
  Request same;
  EXPECT_EQ(check("dave", "0", same), Verdict::waits);  // shares a check
  access_.close();                                      // before the requests end
}

// Users repeat their password; guesses differ.
TEST_F(WebAccessLogins, CredentialsThatAreRepeatedPrecedeNewOnes) {
  std::array<Request, WebAccess::kMostWaiting> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    EXPECT_EQ(check("dave", std::to_string(i), guesses[i]), Verdict::waits);
  }
  Request dave;
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::too_many);
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::waits);
  EXPECT_EQ(guesses.back().resumed, 1);
  EXPECT_EQ(check("dave", "7", guesses.back()), Verdict::too_many);
  access_.close();  // before the requests end
}

// The attack, after a restart: a host sends random passwords of a known user without end. A scrape with the
// right password from another host is neither refused nor left waiting.
TEST_F(WebAccessLogins, GuessesOfOneHostDoNotLockTheUserOut) {
  std::deque<Request> guesses;
  const auto guess = [&] {
    check("dave", std::to_string(guesses.size()), guesses.emplace_back(), "10.0.0.66");
  };
  for (int i = 0; i < 3000; ++i) guess();
  Request dave;
  ASSERT_EQ(check("dave", "dave123", dave), Verdict::waits);
  for (int i = 0; i < 3000; ++i) guess();
  EXPECT_EQ(dave.resumed, 0) << "the guesses displace each other only";
  ASSERT_TRUE(access_.start());
  while (dave.resumed == 0) guess();
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::admitted);
  access_.close();  // before the requests end
}

// A user that has not logged in yet must not be kept out by guesses that are surely wrong.
TEST_F(WebAccessLogins, APasswordThatMayBeGoodDisplacesASurelyBadOne) {
  std::array<Request, WebAccess::kMostWaiting> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    EXPECT_EQ(check("nobody" + std::to_string(i), "x", guesses[i]), Verdict::waits);
  }
  Request dave;
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::waits);
  EXPECT_EQ(guesses.back().resumed, 1);
  EXPECT_EQ(check("nobody7", "x", guesses.back()), Verdict::too_many);
  for (std::size_t i = 0; i + 1 < guesses.size(); ++i) EXPECT_EQ(guesses[i].resumed, 0);
  access_.close();  // before the requests end
}

TEST_F(WebAccessLogins, KnownUsersDoNotWait) {
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::admitted);
  users_["slow"] = hashed("slow", "10");
  apply();
  std::array<Request, 12> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) check("slow", std::to_string(i), guesses[i]);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(known("dave", "dave123"), Verdict::admitted);
  access_.close();
}

TEST_F(WebAccessLogins, ReleaseEndsTheWaitOfOneRequest) {
  Request gone;
  Request stays;
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::waits);
  EXPECT_EQ(check("dave", "dave123", stays), Verdict::waits);
  access_.release(&gone);
  access_.release(&gone);  // no effect: it does not wait
  EXPECT_EQ(gone.resumed, 1);
  EXPECT_EQ(stays.resumed, 0);
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::too_many);
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::waits);  // its verdict was used up
  access_.release(&gone);
  access_.forget(&gone);  // a new request may have the same address
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::waits);
  access_.close();  // before the requests end
}

TEST_F(WebAccessLogins, CloseResumesAll) {
  std::array<Request, 3> requests;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(check("dave", std::to_string(i), requests[i]), Verdict::waits);
  }
  access_.close();
  for (Request& request : requests) EXPECT_EQ(request.resumed, 1);
  EXPECT_EQ(check("dave", "0", requests[0]), Verdict::too_many);
  Request late;
  EXPECT_EQ(check("dave", "late", late), Verdict::too_many);
  EXPECT_EQ(late.paused, 0);
}

TEST_F(WebAccessLogins, AChangedHashIsCheckedAgain) {
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::admitted);
  users_["dave"] = hashed("new");
  apply();
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::unauthorized);
  EXPECT_EQ(verdict("dave", "new"), Verdict::admitted);
  users_.erase("dave");
  apply();
  EXPECT_EQ(verdict("dave", "new"), Verdict::unauthorized);
}

// Bad results displace each other only, so a user who is known never waits.
TEST_F(WebAccessLogins, AThousandGuessesDoNotDisplaceAGoodPassword) {
  ASSERT_TRUE(access_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::admitted);
  for (std::size_t i = 0; i < 2 * WebAccess::kMostBad; ++i) {
    EXPECT_EQ(verdict("dave", std::to_string(i)), Verdict::unauthorized);
  }
  EXPECT_EQ(known("dave", "dave123"), Verdict::admitted);
}

// CVE-2022-46146: the parts of a key keep their boundaries, so a known result answers for no other
// credentials.
TEST_F(WebAccessLogins, CredentialsThatRunIntoEachOtherAreChecked) {
  ASSERT_TRUE(access_.start());
  const std::string hash = users_["alice"];
  EXPECT_EQ(verdict("alice", "alice123"), Verdict::admitted);
  for (const auto& [user, password] : {std::pair(std::string("alice") + hash, std::string("alice123")),
                                       std::pair(std::string("alice"), hash + "alice123"),
                                       std::pair(std::string("alic"), "e" + hash + "alice123")}) {
    EXPECT_EQ(verdict(user, password), Verdict::unauthorized) << user;
  }
}

TEST_F(WebAccessLogins, ManyThreadsGetTheRightVerdicts) {
  ASSERT_TRUE(access_.start());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 30; ++i) {
    threads.emplace_back([this, &wrong, i] {
      const bool is_good = i % 2 == 0;
      for (int turn = 0; turn < 5; ++turn) {
        const Verdict found = verdict("alice", is_good ? "alice123" : "alice1234");
        if (found != (is_good ? Verdict::admitted : Verdict::unauthorized)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

const std::string kDaveHash = "$2y$10$2UXri9cIDdgeKjBo4Rlpx.U3ZLDV8X1IxKmsfOvhcM5oXQt/mLmXq";  // dave123

TEST(Bcrypt, ReadsTheCost) {
  EXPECT_EQ(*bcrypt_cost(kDaveHash), 10U);
  for (const char letter : {'a', 'b', 'x', 'y'}) {
    std::string hash = kDaveHash;
    hash[2] = letter;
    EXPECT_TRUE(bcrypt_cost(hash)) << hash;
  }
}

TEST(Bcrypt, RejectsOtherForms) {
  const auto changed = [](std::size_t at, char c) {
    std::string hash = kDaveHash;
    hash[at] = c;
    return hash;
  };
  for (const std::string& hash : {std::string(), kDaveHash.substr(1), kDaveHash + "A", changed(0, '!'),
                                  changed(1, '1'), changed(2, 'z'), changed(3, '.'), changed(5, ' '),
                                  changed(6, '.'), changed(20, '$'), changed(59, '\n'), changed(59, '\0')}) {
    EXPECT_FALSE(bcrypt_cost(hash)) << hash;
  }
}

TEST(Bcrypt, ComparesPasswords) {
  EXPECT_EQ(bcrypt_matches("dave123", kDaveHash), true);
  EXPECT_EQ(bcrypt_matches("dave124", kDaveHash), false);
  EXPECT_EQ(bcrypt_matches("", kDaveHash), false);
  EXPECT_EQ(bcrypt_matches(std::string(600, 'x'), kDaveHash), false);  // longer than crypt(3) accepts
  EXPECT_EQ(bcrypt_matches("x", "no hash"), false);
}

TEST(Bcrypt, HasADummyOfEachCost) {
  EXPECT_EQ(dummy_bcrypt_hash(4), "$2y$04$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi");
  EXPECT_EQ(*bcrypt_cost(dummy_bcrypt_hash(14)), 14U);
  EXPECT_EQ(bcrypt_matches("fakepassword", dummy_bcrypt_hash(10)), true);  // as in exporter-toolkit
}

using namespace std::string_literals;

std::string parsed(std::string_view header) {
  const auto credentials = parse_basic_credentials(header);
  return credentials ? credentials->user + "|" + credentials->password : "invalid";
}

TEST(Credentials, AcceptsBasic) {
  EXPECT_EQ(parsed("Basic ZGF2ZTpkYXZlMTIz"), "dave|dave123");
  EXPECT_EQ(parsed("bAsIc   ZGF2ZTpkYXZlMTIz"), "dave|dave123");
  EXPECT_EQ(parsed("Basic ZGF2ZTpkYXZlMQ=="), "dave|dave1");
  EXPECT_EQ(parsed("Basic ZGF2ZTpkYXZlMTI="), "dave|dave12");
  EXPECT_EQ(parsed("Basic YTpiOmM="), "a|b:c");  // only the first colon separates
  EXPECT_EQ(parsed("Basic Og=="), "|");
  EXPECT_EQ(parsed("Basic w6Q6w7Y="), "\u00e4|\u00f6");
}

TEST(Credentials, RejectsOtherTexts) {
  for (const std::string& header :
       {""s, "Basic"s, "Basic "s, "Basic   "s, "BasicZGF2ZTpkYXZlMTIz"s, "Bearer ZGF2ZTpkYXZlMTIz"s,
        "Basic\tZGF2ZTpkYXZlMTIz"s, "Basic ZGF2ZTpkYXZlMTIz "s, "Basic ZGF2ZTpkYXZlMQ="s,
        "Basic ZGF2ZTpkYXZlMQ"s,
        "Basic ZGF2ZTpkYXZlMR=="s,  // unused bits are not 0
        "Basic ZGF2ZTpkYXZl=TIz"s, "Basic ZGF2ZTpkYX-_MTIz"s, "Basic ===="s, "Basic ZGF2\0ZTpk"s,
        "Basic ZGF2ZQ=="s,     // no colon
        "Basic YTpiAGM="s,     // a password with NUL: bcrypt would compare "b" only
        "Basic YToKYg=="s}) {  // a line end
    EXPECT_EQ(parsed(header), "invalid") << header;
  }
}

}  // namespace
}  // namespace gpumeter

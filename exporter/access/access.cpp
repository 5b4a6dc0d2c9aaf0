#include "exporter/access/access.hpp"

#include <crypt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr std::size_t kHashLength = 60;
constexpr std::size_t kCostAt = 4;  // "$2y$"
constexpr std::size_t kSaltAt = 7;  // "$2y$10$"

bool is_bcrypt_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/';
}

bool is_prefix(std::string_view text) noexcept {
  return text.starts_with("$2") && std::string_view("abxy").find(text[2]) != std::string_view::npos &&
         text[3] == '$' && text[6] == '$';
}

/// crypt_rn()'s 32 KiB of scratch memory, which hold the password; wiped at the end.
struct WipeScratch {
  void operator()(crypt_data* data) const noexcept {
    explicit_bzero(data, sizeof *data);
    delete data;
  }
};

constexpr std::string_view kScheme = "basic";
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char lowered(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

/// Removes the scheme and the blanks after it; false if it is another one.
bool take_scheme(std::string_view& text) noexcept {
  if (text.size() <= kScheme.size() || text[kScheme.size()] != ' ') return false;
  const std::string_view scheme = text.substr(0, kScheme.size());
  if (!std::ranges::equal(scheme, kScheme, {}, lowered)) return false;
  text.remove_prefix(std::min(text.find_first_not_of(' ', kScheme.size()), text.size()));
  return true;
}

/// Decodes base64 with padding, whose unused bits must be 0 (RFC 4648 section 3.5).
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xffffU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xffU);
  }
  const bool is_canonical = (bits & ((1U << count) - 1)) == 0;
  return is_canonical ? std::optional(bytes) : std::nullopt;
}

bool is_ascii_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

Result<unsigned> bcrypt_cost(std::string_view hash) {
  if (hash.size() < kHashLength) return Error("hashedSecret too short to be a bcrypted password");
  if (hash.size() > kHashLength) return Error("the hash is too long to be a bcrypted password");
  if (!is_prefix(hash)) return Error("must be a bcrypt hash that starts with $2a$, $2b$, $2x$ or $2y$");
  const auto cost = parse_number<unsigned>(hash.substr(kCostAt, 2));
  if (!cost || *cost < 4 || *cost > 31) return Error("the bcrypt cost must be from 04 to 31");
  if (!std::ranges::all_of(hash.substr(kSaltAt), is_bcrypt_digit)) {
    return Error("the bcrypt hash has a character other than ./0-9A-Za-z");
  }
  return *cost;
}

// exporter-toolkit's dummy hash, with the cost of the real ones.
std::string dummy_bcrypt_hash(unsigned cost) {
  const std::string digits = std::to_string(cost);
  return "$2y$" + (digits.size() < 2 ? "0" + digits : digits) +
         "$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
}

std::optional<bool> bcrypt_matches(const std::string& password, const std::string& hash) {
  const std::unique_ptr<crypt_data, WipeScratch> data(new (std::nothrow) crypt_data());
  if (data == nullptr) return std::nullopt;
  const char* computed = crypt_rn(password.c_str(), hash.c_str(), data.get(), sizeof *data);
  if (computed == nullptr) return false;
  const std::string_view text = computed;
  if (text.size() != hash.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < text.size(); ++i) difference |= static_cast<unsigned char>(text[i] ^ hash[i]);
  return difference == 0;
}

std::optional<Credentials> parse_basic_credentials(std::string_view header) {
  if (!take_scheme(header)) return std::nullopt;
  const std::optional<std::string> text = decode_base64(header);
  if (!text || std::ranges::any_of(*text, is_ascii_control)) return std::nullopt;
  const std::size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credentials{text->substr(0, colon), text->substr(colon + 1)};
}

namespace {

using Verdict = Admission::Verdict;
using Users = std::map<std::string, std::string>;

/// What identifies a pair of credentials and the hash to compare with, without the password: HMAC-SHA-256
/// under a random key of this process.
using LoginKey = std::array<std::uint8_t, 32>;

/// A password and what it is compared with.
struct Login {
  Credentials credentials;
  std::string hash;
  bool is_user = false;  ///< false: compared with the dummy hash, and bad in any case
};

/// The hash of the user, or one that takes as long as the most costly user's.
Login login_of(const Users& users, Credentials credentials) {
  if (const auto found = users.find(credentials.user); found != users.end()) {
    return {std::move(credentials), found->second, true};
  }
  unsigned most = 4;
  for (const auto& [name, hash] : users) {
    if (const Result<unsigned> cost = bcrypt_cost(hash)) most = std::max(most, *cost);
  }
  return {std::move(credentials), dummy_bcrypt_hash(most), false};
}

/// Results of bcrypt.
class LoginCache {
 public:
  LoginCache() {
    std::uint32_t seed = 0;
    if (gnutls_rnd(GNUTLS_RND_KEY, secret_.data(), secret_.size()) < 0 ||
        gnutls_rnd(GNUTLS_RND_NONCE, &seed, sizeof seed) < 0) {
      throw std::runtime_error("the system has no random numbers");
    }
    random_.seed(seed);
  }

  /// The parts have their lengths in the key: no two different logins have the same bytes (CVE-2022-46146).
  LoginKey key(const Login& login) const {
    const auto parts = {std::string_view(login.credentials.user), std::string_view(login.hash),
                        std::string_view(login.credentials.password)};
    std::size_t size = 0;
    for (const std::string_view part : parts) size += sizeof size + part.size();
    std::string text;
    text.reserve(size);  // one buffer, which can be wiped
    for (const std::string_view part : parts) {
      const std::size_t length = part.size();
      text.append(reinterpret_cast<const char*>(&length), sizeof length).append(part);
    }
    LoginKey key{};
    const int error = gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret_.data(), secret_.size(), text.data(),
                                       text.size(), key.data());
    explicit_bzero(text.data(), text.size());
    if (error < 0) throw std::runtime_error(gnutls_strerror(error));
    return key;
  }

  /// nullopt: unknown.
  std::optional<bool> find(const std::string& user, const LoginKey& key) const {
    const auto good = good_.find(user);
    if (good != good_.end() && good->second.key == key) return true;
    if (std::ranges::find(bad_, key) != bad_.end()) return false;
    return std::nullopt;
  }

  // A random victim: an attacker cannot predict which of its guesses is checked again.
  void keep(const Login& login, const LoginKey& key, bool is_good) {
    if (is_good) {
      good_[login.credentials.user] = {login.hash, key};
    } else if (bad_.size() < WebAccess::kMostBad) {
      bad_.push_back(key);
    } else {
      bad_[random_() % bad_.size()] = key;
    }
  }

  /// True if a good password for this hash is known. Any other one is then bad.
  bool knows(const Login& login) const {
    const auto good = good_.find(login.credentials.user);
    return good != good_.end() && good->second.hash == login.hash;
  }

  /// Drops results of users that are gone or have another hash.
  void retain(const Users& users) {
    std::erase_if(good_, [&](const auto& entry) {
      const auto user = users.find(entry.first);
      return user == users.end() || user->second != entry.second.hash;
    });
  }

 private:
  struct Good {
    std::string hash;
    LoginKey key;
  };

  std::array<std::uint8_t, 32> secret_{};
  std::map<std::string, Good> good_;
  std::vector<LoginKey> bad_;
  std::minstd_rand random_;
};

/// How likely a password is good; ranks of the waiting room.
enum Likelihood : unsigned {
  /// The user does not exist, or has another password that is good. The password is checked all the same, so
  /// that the time of an answer does not tell which users exist.
  surely_bad,
  may_be_good,
  /// As may_be_good, and the same credentials were refused before: users repeat their password, guesses
  /// differ.
  asked_again
};

}  // namespace

struct WebAccess::Logins {
  using Room = WaitingRoom<LoginKey, Login, Verdict>;

  Mutex mutex;
  LoginCache cache GPUMETER_GUARDED_BY(mutex);
  Room room GPUMETER_GUARDED_BY(mutex){kMostWaiting, Verdict::too_many};
  std::deque<LoginKey> refused GPUMETER_GUARDED_BY(mutex);  ///< the last ones

  Likelihood likelihood_of(const LoginKey& key, const Login& login) GPUMETER_REQUIRES(mutex) {
    if (!login.is_user || cache.knows(login)) return surely_bad;
    return std::ranges::find(refused, key) == refused.end() ? may_be_good : asked_again;
  }

  /// Returns false if all places are taken by checks that are not less likely.
  bool add(const LoginKey& key, Login login, Waiter waiter) GPUMETER_REQUIRES(mutex) {
    constexpr std::size_t kMostRefused = 1024;
    const Likelihood rank = likelihood_of(key, login);
    const std::optional<LoginKey> lost = room.add({key, std::move(login), 0, rank, {std::move(waiter)}});
    if (lost) refused.push_back(*lost);
    if (refused.size() > kMostRefused) refused.pop_front();
    return lost != key;
  }

  std::optional<Room::Job> take() GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return room.take();
  }

  /// One turn of the thread.
  void run() GPUMETER_EXCLUDES(mutex) {
    while (std::optional<Room::Job> job = take()) {
      std::string& password = job->work.credentials.password;
      const std::optional<bool> matches = bcrypt_matches(password, job->work.hash);
      explicit_bzero(password.data(), password.size());
      const bool is_good = matches.value_or(false) && job->work.is_user;
      const MutexLock lock(mutex);
      if (matches) cache.keep(job->work, job->key, is_good);
      // Without a result memory is short.
      room.finish(job->key, !matches  ? Verdict::too_many
                            : is_good ? Verdict::admitted
                                      : Verdict::unauthorized);
    }
  }
};

WebAccess::WebAccess(const Clock& clock, std::shared_ptr<const WebGeneration> first)
    : clock_(clock),
      limit_(first->settings.rate_limit),
      current_(std::move(first)),
      tokens_(limit_.burst),
      filled_at_(clock.monotonic()),
      logins_(std::make_shared<Logins>()),
      worker_(clock) {}

Result<Done> WebAccess::start() {
  return worker_.start("web-users", [logins = logins_] {
    logins->run();
    return Worker::kForever;
  });
}

void WebAccess::close() {
  const MutexLock lock(logins_->mutex);
  logins_->room.close();
}

std::shared_ptr<const WebGeneration> WebAccess::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void WebAccess::replace(std::shared_ptr<const WebGeneration> wanted) {
  {
    const MutexLock lock(logins_->mutex);
    logins_->cache.retain(wanted->settings.users);
  }
  const MutexLock lock(mutex_);
  current_ = std::move(wanted);
}

bool WebAccess::take_token() {
  if (limit_.interval <= Nanoseconds(0)) return true;
  const MutexLock lock(mutex_);
  const Nanoseconds now = clock_.monotonic();
  const double earned = to_seconds(now - filled_at_) / to_seconds(limit_.interval);
  tokens_ = std::min(tokens_ + earned, static_cast<double>(limit_.burst));
  filled_at_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

Admission WebAccess::admit(const Visitor& visitor, const Pausing& pausing) {
  if (!visitor.is_resumed && !take_token()) return {Verdict::rate_limited, nullptr};
  Admission admission{Verdict::admitted, current()};
  admission.verdict = login(admission.generation->settings, visitor, pausing);
  return admission;
}

Admission WebAccess::admit_unseen() {
  if (!take_token()) return {Verdict::rate_limited, nullptr};
  return {Verdict::admitted, current()};
}

// The result of a check serves one request only, also if the new generation needs no login.
Verdict WebAccess::login(const WebSettings& settings, const Visitor& visitor, const Pausing& pausing) {
  std::optional<Verdict> checked;
  if (visitor.is_resumed) {
    const MutexLock lock(logins_->mutex);
    checked = logins_->room.answer_to(visitor.request);
  }
  if (settings.users.empty()) return Verdict::admitted;
  if (!visitor.authorization) return Verdict::unauthorized;
  auto credentials = parse_basic_credentials(*visitor.authorization);
  if (!credentials) return Verdict::unauthorized;
  if (checked) return *checked;
  Login login = login_of(settings.users, *std::move(credentials));
  const MutexLock lock(logins_->mutex);
  const LoginKey key = logins_->cache.key(login);
  if (const auto known = logins_->cache.find(login.credentials.user, key)) {
    return *known ? Verdict::admitted : Verdict::unauthorized;
  }
  const Waiter waiter{visitor.request, visitor.peer, pausing.resume};
  if (!logins_->room.join(key, waiter)) {
    if (!logins_->add(key, std::move(login), waiter)) return Verdict::too_many;
    worker_.wake();
  }
  pausing.pause(visitor.request);
  return Verdict::waits;
}

void WebAccess::release(void* request) {
  const MutexLock lock(logins_->mutex);
  logins_->room.release(request);
}

void WebAccess::forget(void* request) {
  const MutexLock lock(logins_->mutex);
  logins_->room.forget(request);
}

}  // namespace gpumeter

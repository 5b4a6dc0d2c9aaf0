#include "exporter/access/login_cache.hpp"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace gpumeter {
namespace {

void append_part(std::string& to, std::string_view part) {
  const std::uint64_t size = part.size();
  to.append(reinterpret_cast<const char*>(&size), sizeof size);
  to.append(part);
}

}  // namespace

LoginCache::LoginCache() {
  std::uint32_t seed = 0;
  if (gnutls_rnd(GNUTLS_RND_KEY, secret_.data(), secret_.size()) < 0 ||
      gnutls_rnd(GNUTLS_RND_NONCE, &seed, sizeof seed) < 0) {
    throw std::runtime_error("the system has no random numbers");
  }
  random_.seed(seed);
}

LoginKey LoginCache::key(const Credentials& credentials, const std::string& hash) const {
  std::string text;
  const auto parts = {std::string_view(credentials.user), std::string_view(hash),
                      std::string_view(credentials.password)};
  std::size_t size = 0;
  for (const std::string_view part : parts) size += sizeof(std::uint64_t) + part.size();
  text.reserve(size);  // one buffer, which can be wiped
  for (const std::string_view part : parts) append_part(text, part);
  LoginKey key{};
  const int error = gnutls_hmac_fast(GNUTLS_MAC_SHA256, secret_.data(), secret_.size(), text.data(),
                                     text.size(), key.data());
  explicit_bzero(text.data(), text.size());
  if (error < 0) throw std::runtime_error(gnutls_strerror(error));
  return key;
}

std::optional<bool> LoginCache::find(const std::string& user, const LoginKey& key) const {
  const auto good = good_.find(user);
  if (good != good_.end() && good->second.key == key) return true;
  if (std::ranges::find(bad_, key) != bad_.end()) return false;
  return std::nullopt;
}

// A random victim: an attacker cannot predict which of its guesses is checked again.
void LoginCache::keep(const std::string& user, const std::string& hash, const LoginKey& key, bool is_good) {
  if (is_good) {
    good_[user] = {hash, key};
  } else if (bad_.size() < kMostBad) {
    bad_.push_back(key);
  } else {
    bad_[random_() % kMostBad] = key;
  }
}

bool LoginCache::knows(const std::string& user, const std::string& hash) const {
  const auto good = good_.find(user);
  return good != good_.end() && good->second.hash == hash;
}

void LoginCache::retain(const std::map<std::string, std::string>& users) {
  std::erase_if(good_, [&](const auto& entry) {
    const auto user = users.find(entry.first);
    return user == users.end() || user->second != entry.second.hash;
  });
}

}  // namespace gpumeter

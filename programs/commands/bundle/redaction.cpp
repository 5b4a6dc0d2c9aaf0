#include "programs/commands/bundle/redaction.hpp"

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace gpumeter::bundle {
namespace {

// A shorter identity or name could be a word or a number of its own.
constexpr std::size_t kLong = 8;
constexpr std::size_t kShortestName = 3;

constexpr std::string_view kIdentityLabels[] = {"uuid", "serial",         "peer",        "mig_uuid",
                                                "pdi",  "chassis_serial", "cluster_uuid"};
constexpr std::string_view kUserLabels[] = {"user", "owner"};
constexpr std::string_view kHostLabels[] = {"host", "hostname"};

// What stands in front of an identity or a name of any length: labels, keys of logs, of YAML and of JSON.
constexpr std::string_view kPlaces[] = {
    "user=",     "user=\"",     "\"user\":\"", "owner=\"",  "host=",         "host=\"",    "\"host\":\"",
    "hostname=", "hostname=\"", "/home/",      "serial=\"", "\"serial\":\"", "serial: \"", "serial=",
    "uuid=\"",   "\"uuid\":\"", "uuid: \"",    "uuid=",     "peer=\"",       "vm: \""};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z'); }
bool is_in_word(char c) { return is_alnum(c) || c == '_'; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

/// True behind env_project="
bool is_value_of_variable(std::string_view text, std::size_t at) {
  if (at < 2 || text.substr(at - 2, 2) != "=\"") return false;
  std::size_t begin = at - 2;
  while (begin > 0 && is_in_word(text[begin - 1])) --begin;
  return text.substr(begin).starts_with("env_");
}

/// Takes the text up to an unescaped quote, and the quote.
std::string_view take_quoted(std::string_view& line) {
  std::size_t end = 0;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2U : 1U;
  const std::string_view value = line.substr(0, end);
  line.remove_prefix(std::min(line.size(), end + 1));
  return value;
}

bool is_any_of(std::string_view value, std::initializer_list<std::string_view> values) {
  return std::ranges::find(values, value) != values.end();
}

/// "0000:0c:00.0" is where a card is, and no property of the card.
bool is_pci_address(std::string_view value) {
  return value.size() >= 12 && value[value.size() - 2] == '.' && std::ranges::count(value, ':') == 2;
}

/// The form of the value with a number at its end.
std::string of_same_form(std::string_view value, std::size_t number) {
  const std::size_t prefix = value.starts_with("GPU-") || value.starts_with("MIG-") ? 4 : 0;
  std::string out(value);
  std::string digits = std::to_string(number);
  for (std::size_t i = out.size(); i-- > prefix;) {
    if (!is_alnum(out[i])) continue;
    out[i] = digits.empty() ? '0' : digits.back();
    if (!digits.empty()) digits.pop_back();
  }
  return out + digits;  // a value with fewer places than the number has
}

std::string hex_of(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; value >>= 4U) text[i] = "0123456789abcdef"[value & 15U];
  return text;
}

}  // namespace

Redaction::Redaction(std::string_view words) {
  for (std::size_t at = 0; at < words.size();) {
    std::size_t end = at;
    while (end < words.size() && is_in_word(words[end])) ++end;
    if (end > at) words_.insert(lowered(words.substr(at, end - at)));
    at = end + 1;
  }
}

void Redaction::add(std::string_view value, std::string replacement, Where where, bool is_name) {
  const std::string key = lowered(value);
  if (!known_.emplace(key, replacement).second) return;
  std::vector<Secret>& list = by_first_[static_cast<unsigned char>(key.front())];
  const auto place =
      std::ranges::find_if(list, [&](const Secret& each) { return each.value.size() < key.size(); });
  list.insert(place, {key, std::move(replacement), where, is_name});
}

void Redaction::add_identity(std::string_view value) {
  value = trimmed(value.substr(0, value.find('\0')));
  for (const std::string_view prefix : {"GPU-", "MIG-", "0x"}) {
    if (value.starts_with(prefix) && value.size() >= prefix.size() + kLong)
      value.remove_prefix(prefix.size());
  }
  const bool tells_nothing = value.find_first_not_of("0-: ") == std::string_view::npos ||
                             is_any_of(lowered(value), {"n/a", "unknown", "none", "[n/a]"});
  if (tells_nothing || is_pci_address(value) || known_.contains(lowered(value))) return;
  const bool is_number = std::ranges::all_of(value, is_digit);
  const Where where = value.size() < kLong ? Where::place : is_number ? Where::word : Where::anywhere;
  add(value, of_same_form(value, ++identities_), where, false);
}

void Redaction::add_number(std::uint64_t value) {
  if (value == 0) return;
  const std::string hex = hex_of(value);
  add_identity(hex);
  const std::optional<std::uint64_t> shown = parse_number<std::uint64_t>(known_.at(hex), 16);
  const std::string decimal = std::to_string(value);
  const Where where = decimal.size() < kLong ? Where::place : Where::word;
  add(decimal, std::to_string(shown.value_or(0)), where, false);
  if (hex.front() == '0') {  // as ROCm's tools print it
    const std::size_t begin = hex.find_first_not_of('0');
    add(std::string_view(hex).substr(begin), known_.at(hex).substr(begin),
        hex.size() - begin < kLong ? Where::place : Where::word, false);
  }
}

void Redaction::add_name(std::string_view name, std::string_view kind, std::size_t& count) {
  const bool is_anybody =
      std::ranges::all_of(name, is_digit) || is_any_of(name, {"root", "localhost", "nobody"});
  if (is_anybody || known_.contains(lowered(name))) return;
  const bool is_word = name.size() < kShortestName || words_.contains(lowered(name));
  add(name, std::string(kind) + std::to_string(++count), is_word ? Where::place : Where::word, true);
}

void Redaction::add_secret(std::string_view value) {
  if (!value.empty()) add(value, "REDACTED", value.size() < kLong ? Where::word : Where::anywhere, true);
}

void Redaction::add_labels_of(std::string_view page) {
  while (!page.empty()) {
    std::string_view line = take_until(page, '\n');
    if (line.starts_with('#') || line.find('{') == std::string_view::npos) continue;
    line.remove_prefix(line.find('{') + 1);
    // NAME="VALUE",NAME="VALUE"} N
    for (std::size_t equals = line.find("=\""); equals != std::string_view::npos; equals = line.find("=\"")) {
      const std::string_view name = trimmed(line.substr(0, equals));
      line.remove_prefix(equals + 2);
      const std::string_view value = take_quoted(line);
      if (std::ranges::find(kIdentityLabels, name) != std::end(kIdentityLabels)) add_identity(value);
      if (std::ranges::find(kUserLabels, name) != std::end(kUserLabels)) add_user(value);
      if (std::ranges::find(kHostLabels, name) != std::end(kHostLabels)) add_host(value);
      if (name.starts_with("env_"))
        variables_.emplace(value, "value" + std::to_string(variables_.size() + 1));
      if (line.starts_with(',')) line.remove_prefix(1);
    }
  }
}

const Redaction::Secret* Redaction::secret_at(std::string_view text, std::size_t at, bool with_names) const {
  const auto begins = [&](const Secret& secret) {
    if (text.size() - at < secret.value.size()) return false;
    return std::equal(secret.value.begin(), secret.value.end(),
                      text.begin() + static_cast<std::ptrdiff_t>(at),
                      [](char mine, char theirs) { return mine == lower(theirs); });
  };
  for (const Secret& secret : by_first_[static_cast<unsigned char>(lower(text[at]))]) {
    if ((secret.is_name && !with_names) || !begins(secret)) continue;
    if (secret.where == Where::anywhere) return &secret;
    const std::size_t end = at + secret.value.size();
    if (end < text.size() && is_in_word(text[end])) continue;
    const std::string_view before = text.substr(0, at);
    const bool is_at_place =
        std::ranges::any_of(kPlaces, [&](std::string_view place) { return before.ends_with(place); });
    if (is_at_place) return &secret;
    if (secret.where == Where::word && (at == 0 || !is_in_word(text[at - 1]))) return &secret;
  }
  return nullptr;
}

std::pair<std::size_t, std::string_view> Redaction::match_at(std::string_view text, std::size_t at,
                                                             bool with_names) const {
  if (with_names && is_value_of_variable(text, at)) {
    std::string_view rest = text.substr(at);
    const std::string_view value = take_quoted(rest);
    for (const auto& [replaced, name] :
         {std::pair(&known_, lowered(value)), {&variables_, std::string(value)}}) {
      if (const auto found = replaced->find(name); found != replaced->end())
        return {value.size(), found->second};
    }
  }
  if (by_first_[static_cast<unsigned char>(lower(text[at]))].empty()) return {};
  const Secret* const secret = secret_at(text, at, with_names);
  if (secret == nullptr) return {};
  return {secret->value.size(), secret->replacement};
}

std::string Redaction::replaced(std::string_view text, bool with_names) const {
  std::string out;
  std::size_t kept = 0;  // of the text, in `out`
  for (std::size_t at = 0; at < text.size();) {
    const auto [size, replacement] = match_at(text, at, with_names);
    if (size == 0) {
      ++at;
      continue;
    }
    out.append(text, kept, at - kept).append(replacement);
    kept = at += size;
  }
  return out.append(text, kept);
}

}  // namespace gpumeter::bundle

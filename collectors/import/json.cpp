#include "collectors/import/json.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr int kMostLevels = 64;

void append_utf8(std::string& text, std::uint32_t code) {
  constexpr std::uint32_t kLow = 0x3F;
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6U);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12U);
    } else {
      add(0xF0 | code >> 18U);
      add(0x80 | (code >> 12U & kLow));
    }
    add(0x80 | (code >> 6U & kLow));
  }
  add(0x80 | (code & kLow));
}

class Parser {
 public:
  Parser(std::string_view text, std::size_t line) : rest_(text), line_(line) {}

  Result<Json> document() {
    Json root;
    if (!value(root, 0)) return error();
    skip_blanks();
    if (!rest_.empty()) return at_line(line_, "text follows the JSON document");
    return root;
  }

 private:
  Error error() const {
    if (!why_.empty()) return at_line(line_, why_);
    if (rest_.empty()) return at_line(line_, "the JSON document ends here: the file is cut");
    return at_line(line_, "no JSON");
  }
  bool fail(std::string_view why) {
    why_ = why;
    return false;
  }
  void skip_blanks() {
    for (; !rest_.empty() && std::string_view(" \t\r\n").find(rest_.front()) != std::string_view::npos;
         rest_.remove_prefix(1)) {
      if (rest_.front() == '\n') ++line_;
    }
  }
  bool take(char token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool value(Json& json, int level) {
    skip_blanks();
    json.line = line_;
    if (level >= kMostLevels) return fail("more than 64 levels");
    if (rest_.empty()) return false;
    if (take('{')) return object(json, level);
    if (take('[')) return array(json, level);
    if (rest_.front() == '"') {
      json.kind = Json::Kind::text;
      return string(json.text);
    }
    if (take_word("null")) return true;
    for (const auto& [word, truth] : {std::pair("true", 1.0), std::pair("false", 0.0)}) {
      if (!take_word(word)) continue;
      json.kind = Json::Kind::boolean;
      json.number = truth;
      return true;
    }
    return number(json);
  }

  bool number(Json& json) {
    json.kind = Json::Kind::number;
    const bool is_digit = rest_.front() == '-' || (rest_.front() >= '0' && rest_.front() <= '9');
    const auto parsed = is_digit ? take_number<double>(rest_) : std::nullopt;
    if (!parsed || !std::isfinite(*parsed)) return false;
    json.number = *parsed;
    return true;
  }

  bool array(Json& json, int level) {
    json.kind = Json::Kind::array;
    if (take(']')) return true;
    do {
      if (!value(json.items.emplace_back(), level + 1)) return false;
    } while (take(','));
    return take(']');
  }

  bool object(Json& json, int level) {
    json.kind = Json::Kind::object;
    if (take('}')) return true;
    do {
      skip_blanks();
      if (!string(json.keys.emplace_back()) || !take(':')) return false;
      if (!value(json.items.emplace_back(), level + 1)) return false;
    } while (take(','));
    return take('}');
  }

  bool string(std::string& text) {
    if (!rest_.starts_with('"')) return false;
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_.front() != '"') {
      const char c = rest_.front();
      if (c == '\n') return fail("a text has no end");
      rest_.remove_prefix(1);
      if (c != '\\') {
        text += c;
      } else if (!escape(text)) {
        return false;
      }
    }
    return take_quote();
  }
  bool take_quote() {
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool escape(std::string& text) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    if (rest_.empty()) return false;
    const char name = rest_.front();
    rest_.remove_prefix(1);
    if (name == 'u') return unicode(text);
    const std::size_t at = kNames.find(name);
    if (at == std::string_view::npos) return fail("an unknown escape in a text");
    text += kValues[at];
    return true;
  }

  bool unicode(std::string& text) {
    std::uint32_t code = 0;
    if (!hex(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (!take_word("\\u") || !hex(low) || low < 0xDC00 || low > 0xDFFF) return fail("half a character");
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    }
    append_utf8(text, code);
    return true;
  }

  bool hex(std::uint32_t& code) {
    constexpr std::size_t kDigits = 4;
    const auto parsed = parse_number<std::uint32_t>(rest_.substr(0, kDigits), 16);
    if (!parsed || rest_.size() < kDigits) return false;
    rest_.remove_prefix(kDigits);
    code = *parsed;
    return true;
  }

  std::string_view rest_;
  std::size_t line_;
  std::string why_;
};

}  // namespace

const Json* Json::find(std::string_view key) const noexcept {
  const auto found = std::ranges::find(keys, key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

std::string_view Json::text_of(std::string_view key) const noexcept {
  const Json* const member = find(key);
  return member != nullptr ? std::string_view(member->text) : std::string_view();
}

Result<Json> parse_json(std::string_view text, std::size_t first_line) {
  return Parser(text, first_line).document();
}

}  // namespace gpumeter::import

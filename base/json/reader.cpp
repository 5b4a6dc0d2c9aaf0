#include "base/json/reader.hpp"

namespace gpumeter {

void JsonReader::skip_blanks() noexcept {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n,"), rest_.size()));
}

bool JsonReader::take(char expected) noexcept {
  skip_blanks();
  if (failed_ || !rest_.starts_with(expected)) return false;
  rest_.remove_prefix(1);
  return true;
}

bool JsonReader::begin(char bracket) noexcept {
  if (depth_ >= kDeepest || !take(bracket)) {
    fail();
    return false;
  }
  ++depth_;
  return true;
}

bool JsonReader::end(char bracket) noexcept {
  if (!take(bracket)) return false;
  --depth_;
  return true;
}

bool JsonReader::next_key(std::string_view& key) noexcept {
  if (failed_ || end('}')) return false;
  key = string();
  if (!take(':')) fail();
  return !failed_;
}

bool JsonReader::next_element() noexcept {
  if (failed_ || end(']')) return false;
  if (rest_.empty()) fail();
  return !failed_;
}

std::string_view JsonReader::string() noexcept {
  if (!take('"')) return fail(), std::string_view();
  std::size_t length = 0;
  while (length < rest_.size() && rest_[length] != '"') length += rest_[length] == '\\' ? 2U : 1U;
  if (length >= rest_.size()) return fail(), std::string_view();
  const std::string_view text = rest_.substr(0, length);
  rest_.remove_prefix(length + 1);
  return text;
}

std::string_view JsonReader::token() noexcept {
  skip_blanks();
  const std::string_view text = rest_.substr(0, rest_.find_first_of(" \t\r\n,:{}[]\""));
  rest_.remove_prefix(text.size());
  if (failed_ || text.empty()) return fail(), std::string_view();
  return text;
}

bool JsonReader::boolean() noexcept {
  const std::string_view text = token();
  if (text != "true" && text != "false") fail();
  return text == "true" && !failed_;
}

void JsonReader::skip_scalar() noexcept {
  skip_blanks();
  if (rest_.starts_with('"')) {
    string();
  } else {
    token();
  }
}

// Counts brackets without a stack: a document whose brackets do not match is not read by its callers.
void JsonReader::skip() noexcept {
  std::size_t open = 0;
  do {
    skip_blanks();
    if (rest_.starts_with('{') || rest_.starts_with('[')) {
      rest_.remove_prefix(1);
      ++open;
      if (depth_ + open > kDeepest) fail();
    } else if (open > 0 && (rest_.starts_with('}') || rest_.starts_with(']'))) {
      rest_.remove_prefix(1);
      --open;
    } else if (open > 0 && rest_.starts_with(':')) {
      rest_.remove_prefix(1);
    } else {
      skip_scalar();
    }
  } while (open > 0 && !failed_);
}

bool JsonReader::is_complete() noexcept {
  skip_blanks();
  return !failed_ && depth_ == 0 && rest_.empty();
}

}  // namespace gpumeter

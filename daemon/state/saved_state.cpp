#include "daemon/state/saved_state.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "base/records.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kMagic = "gpumeter-state";
constexpr std::int64_t kVersion = 1;
constexpr std::string_view kSection = "section";
constexpr std::string_view kEnd = "end";

/// Removes the last line if it is the right checksum of the others.
bool take_checksum(std::string_view& text) {
  if (!text.ends_with('\n')) return false;
  const std::size_t before = text.find_last_of('\n', text.size() - 2);
  if (before == std::string_view::npos || text.size() < 2) return false;
  const std::string_view last = text.substr(before + 1);
  text = text.substr(0, before + 1);
  return last == std::string(kEnd) + '\t' + checksum_of(text) + '\n';
}

/// Returns the length of the first `lines` lines; npos if there are fewer.
std::size_t length_of(std::string_view text, std::int64_t lines) {
  std::size_t length = 0;
  for (; lines > 0; --lines) {
    const std::size_t end = text.find('\n', length);
    if (end == std::string_view::npos) return end;
    length = end + 1;
  }
  return length;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(length);
  return line;
}

bool take_header(std::string_view& text, SavedState& state) {
  if (text.empty()) return false;
  RecordReader header(take_line(text));
  if (!header.next() || header.kind() != kMagic || header.integer(0, kVersion) != kVersion) return false;
  state.machine_id = header.text();
  state.boot_id = header.text();
  state.saved_at = header.time();
  return !header.failed() && !header.has_field();
}

bool take_section(std::string_view& text, StateSections& sections) {
  RecordReader head(take_line(text));
  if (!head.next() || head.kind() != kSection) return false;
  std::string name = head.text();
  const std::int64_t lines = head.integer(0, std::numeric_limits<std::int64_t>::max());
  const std::size_t length = length_of(text, lines);
  if (head.failed() || head.has_field() || length == std::string_view::npos) return false;
  const bool is_new = sections.emplace(std::move(name), text.substr(0, length)).second;
  text.remove_prefix(length);
  return is_new;
}

}  // namespace

std::string checksum_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr int kBits = 32;
  const uLong sum = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(text.data()), text.size());
  std::string digits;
  for (int shift = kBits - 4; shift >= 0; shift -= 4) digits += kDigits[(sum >> shift) & 15U];
  return digits;
}

const std::string& SavedState::section(const std::string& name) const {
  static const std::string kNone;
  const auto found = sections.find(name);
  return found == sections.end() ? kNone : found->second;
}

std::string encode(const SavedState& state) {
  RecordWriter header;
  header.begin(kMagic).integer(kVersion).text(state.machine_id).text(state.boot_id).time(state.saved_at);
  std::string text = header.take();
  for (const auto& [name, lines] : state.sections) {
    RecordWriter head;
    head.begin(kSection).text(name).integer(std::count(lines.begin(), lines.end(), '\n'));
    text += head.take() + lines;
  }
  return text + std::string(kEnd) + '\t' + checksum_of(text) + '\n';
}

Result<SavedState> decode(std::string_view text) {
  if (!take_checksum(text)) return Error("the file is cut or damaged: its checksum does not match");
  SavedState state;
  if (!take_header(text, state)) return Error("the file is not of this version of gpumeter");
  while (!text.empty()) {
    if (!take_section(text, state.sections)) return Error("the file has a malformed section");
  }
  return state;
}

}  // namespace gpumeter

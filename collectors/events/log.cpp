#include "collectors/events/log.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::events {

namespace {

// JSON in JSON, as a container's log of a journal has it.
constexpr int kDeepest = 3;
// A multi-line message of the driver has three lines.
constexpr unsigned kMostLinesOfMessage = 3;
constexpr std::size_t kLongestNode = 64;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text;
}

/// Removes the front of the text if it has this form: '9' stands for a digit, 'A' for a letter, ' ' for a
/// blank, and any other character for itself.
bool skip_form(std::string_view& text, std::string_view form) {
  if (text.size() < form.size()) return false;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const char c = text[i];
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool fits = form[i] == '9' ? is_digit(c) : form[i] == 'A' ? is_letter : c == form[i];
    if (!fits) return false;
  }
  text.remove_prefix(form.size());
  return true;
}

void skip_digits(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
}

/// ".123456" or ",123456".
void skip_fraction(std::string_view& text) {
  if (text.size() < 2 || (text[0] != '.' && text[0] != ',') || !is_digit(text[1])) return;
  text.remove_prefix(1);
  skip_digits(text);
}

/// "Z", "+00:00", "+0000".
void skip_zone(std::string_view& text) {
  for (const std::string_view form : {"Z", "+99:99", "-99:99", "+9999", "-9999"}) {
    if (skip_form(text, form)) return;
  }
}

/// "Nov 24 17:00:00", also with a year, and with the months of other languages ("jan. 29 20:50:17").
bool skip_month_date(std::string_view& text) {
  std::string_view rest = text;
  const std::string_view month = rest.substr(0, rest.find(' '));
  if (month.size() < 3 || month.size() > 12 || month.find_first_of("0123456789:[]") != std::string_view::npos)
    return false;
  rest = without_blanks(rest.substr(month.size()));
  if (!skip_form(rest, "99 ") && !skip_form(rest, "9 ")) return false;
  skip_form(rest, "9999 ");
  if (!skip_form(rest, "99:99:99")) return false;
  text = rest;
  return true;
}

/// The dates of syslog files and of journalctl's formats, with the blank behind them.
bool skip_date(std::string_view& text) {
  constexpr std::string_view kForms[] = {"9999-99-99T99:99:99", "9999-99-99 99:99:99",
                                         "AAA 9999-99-99 99:99:99", "9999999999", "99:99:99"};
  std::string_view rest = text;
  const auto* const form =
      std::ranges::find_if(kForms, [&rest](std::string_view each) { return skip_form(rest, each); });
  if (form == std::end(kForms) && !skip_month_date(rest)) return false;
  skip_fraction(rest);
  skip_zone(rest);
  if (form == &kForms[2] && rest.starts_with(' ')) {  // "Tue 2026-11-24 17:00:00 UTC"
    rest.remove_prefix(std::min(rest.find(' ', 1), rest.size()));
  }
  if (rest.empty() || !is_blank(rest.front())) return false;
  text = without_blanks(rest);
  return true;
}

/// "[  123.456789]", "[Tue Jan  1 00:00:00 2026]", "[  +0.000012]", "[12345.678901 <    0.1>]", "[ T123]".
bool skip_stamp(std::string_view& text) {
  if (text.empty() || text.front() != '[') return false;
  const std::size_t end = text.find(']');
  if (end > 40) return false;  // npos too
  const std::string_view inside = text.substr(1, end - 1);
  const bool has_digit = std::ranges::any_of(inside, is_digit);
  const bool is_time = inside.find_first_not_of("0123456789.,+<> ") == std::string_view::npos;
  std::string_view date = inside;
  const bool is_date =
      skip_form(date, "AAA AAA ") || skip_form(date, "AAA99 99:99") || skip_form(date, "9999-99-99");
  std::string_view caller = without_blanks(inside);
  const bool is_caller = skip_form(caller, "T9") || skip_form(caller, "C9");
  const bool is_omitted = inside == "..." || inside == "\xE2\x80\xA6";
  if (!is_omitted && (!has_digit || !(is_time || is_date || is_caller))) return false;
  text = without_blanks(text.substr(end + 1));
  return true;
}

/// "kern  :err   : " of dmesg --decode. Returns the facility; empty: there is none.
std::string_view take_decoded(std::string_view& text) {
  constexpr std::array kFacilities = {"kern",   "user",   "mail",   "daemon", "auth",     "syslog", "lpr",
                                      "news",   "uucp",   "cron",   "ftp",    "authpriv", "local0", "local1",
                                      "local2", "local3", "local4", "local5", "local6",   "local7"};
  std::string_view rest = text;
  const std::string_view facility = rest.substr(0, rest.find_first_of(" :"));
  if (std::ranges::find(kFacilities, facility) == kFacilities.end()) return {};
  rest = without_blanks(rest.substr(facility.size()));
  if (!skip_form(rest, ":")) return {};
  rest = without_blanks(rest);
  rest.remove_prefix(std::min(rest.find_first_of(" :"), rest.size()));
  rest = without_blanks(rest);
  if (!skip_form(rest, ":")) return {};
  text = without_blanks(rest);
  return facility;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const std::size_t escape = std::min(text.find('\x1b'), text.size());
    plain += text.substr(0, escape);
    text.remove_prefix(escape);
    if (text.empty()) break;
    text.remove_prefix(1);
    if (!text.starts_with('[')) continue;
    const std::size_t end = text.find_first_not_of("0123456789;?", 1);
    text.remove_prefix(std::min(end, text.size() - 1) + 1);
  }
  return plain;
}

/// The fields of a JSON object that say who wrote a line, and the line.
class JsonLine {
 public:
  /// False: it is no object.
  bool read(std::string_view text) {
    text_ = without_blanks(text);
    if (!skip_form(text_, "{")) return false;
    while (true) {
      text_ = without_blanks(text_);
      std::string key;
      if (!take_string(&key)) return false;
      text_ = without_blanks(text_);
      if (!skip_form(text_, ":")) return false;
      text_ = without_blanks(text_);
      if (!take_value(key)) return false;
      text_ = without_blanks(text_);
      if (skip_form(text_, "}")) return true;
      if (!skip_form(text_, ",")) return false;
    }
  }

  /// The journal names the transport of each entry; without it, the writer of the message is unknown.
  bool is_complete() const { return !has_message_ || is_of_journal; }

  bool is_of_journal = false;  ///< has fields that only the journal has
  bool is_kernel = true;       ///< no field says otherwise
  std::optional<std::string> line;

 private:
  bool take_string(std::string* out) {
    if (!skip_form(text_, "\"")) return false;
    while (!text_.empty()) {
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\') {
        if (!take_escape(out)) return false;
      } else if (out != nullptr) {
        *out += c;
      }
    }
    return false;
  }

  bool take_escape(std::string* out) {
    if (text_.empty()) return false;
    const char c = text_.front();
    text_.remove_prefix(1);
    if (c == 'u') {
      if (text_.size() < 4) return false;
      const auto code = parse_number<std::uint16_t>(text_.substr(0, 4), 16);
      if (!code) return false;
      text_.remove_prefix(4);
      // The texts that matter are ASCII.
      if (out != nullptr) *out += *code < 0x80 ? static_cast<char>(*code) : '?';
      return true;
    }
    constexpr std::string_view kNames = "nrtbf";
    constexpr std::string_view kBytes = "\n\r\t\b\f";
    const std::size_t known = kNames.find(c);
    if (out != nullptr) *out += known == std::string_view::npos ? c : kBytes[known];
    return true;
  }

  bool take_value(const std::string& key) {
    if (text_.empty()) return false;
    std::string value;
    if (text_.front() == '"') {
      if (!take_string(&value)) return false;
    } else if (text_.front() == '[') {
      if (!take_bytes(value)) return false;
    } else if (text_.front() == '{') {
      return skip_nested();
    } else {
      value = std::string(text_.substr(0, text_.find_first_of(",}")));
      text_.remove_prefix(value.size());
      value = std::string(trimmed(value));
    }
    note(key, value);
    return true;
  }

  /// A journal's field that is not UTF-8: a list of bytes. Other lists are skipped.
  bool take_bytes(std::string& value) {
    std::string_view rest = text_.substr(1);
    while (true) {
      rest = without_blanks(rest);
      const auto byte = take_number<std::uint8_t>(rest);
      if (!byte) break;
      value += static_cast<char>(*byte);
      rest = without_blanks(rest);
      if (skip_form(rest, "]")) {
        text_ = rest;
        return true;
      }
      if (!skip_form(rest, ",")) break;
    }
    value.clear();
    return skip_nested();
  }

  bool skip_nested() {
    int depth = 0;
    while (!text_.empty()) {
      const char c = text_.front();
      if (c == '"') {
        if (!take_string(nullptr)) return false;
        continue;
      }
      text_.remove_prefix(1);
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      if (depth == 0) return true;
    }
    return false;
  }

  void note(std::string_view key, const std::string& value) {
    constexpr std::array kLines = {"MESSAGE", "log", "message", "msg"};
    constexpr std::array kWriters = {"SYSLOG_IDENTIFIER", "syslog_identifier", "ident",       "tag",
                                     "appname",           "app_name",          "programname", "program"};
    constexpr std::array kFacilities = {"SYSLOG_FACILITY", "syslog_facility", "facility"};
    if (key == "_TRANSPORT") {
      is_of_journal = true;
      is_kernel = is_kernel && value == "kernel";
    } else if (std::ranges::find(kWriters, key) != kWriters.end()) {
      is_kernel = is_kernel && value == "kernel";
    } else if (std::ranges::find(kFacilities, key) != kFacilities.end()) {
      is_kernel = is_kernel && (value == "0" || value == "kern");
    } else if (std::ranges::find(kLines, key) != kLines.end() && !line) {
      has_message_ = has_message_ || key == "MESSAGE";
      line = value;
    }
  }

  std::string_view text_;
  bool has_message_ = false;
};

/// "host tag[12]:" or "tag:" at the start, where the text of a kernel's message has other words.
bool has_tag(std::string_view text) {
  if (text.empty() || text.front() == '[') return false;
  const std::string_view first = text.substr(0, text.find(' '));
  if (first.size() == text.size() || first.ends_with(':')) return false;
  text = without_blanks(text.substr(first.size()));
  const std::string_view second = text.substr(0, text.find(' '));
  // "amdgpu 0000:08:00.0:" is the kernel's.
  return second.ends_with(':') && std::ranges::count(second, ':') == 1;
}

/// The fields behind the priority of RFC 5424: "1 TIME HOST kernel PROCID MSGID - text".
std::optional<std::string_view> text_of_rfc5424(std::string_view text) {
  if (!skip_form(text, "1 ")) return std::nullopt;
  std::array<std::string_view, 5> fields;
  for (std::string_view& field : fields) field = take_until(text, ' ');
  if (fields[2] != "kernel") return std::string_view();
  while (text.starts_with('[')) text = text.substr(std::min(text.find(']'), text.size() - 1) + 1);
  if (text.starts_with("- ") || text == "-") text.remove_prefix(1);
  text = without_blanks(text);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

/// `priority`: facility * 8 + level. Only the kernel writes with facility 0.
bool is_of_kernel(std::uint64_t priority) { return priority < 8; }

/// The date before a message, up to the second; empty: the line has none.
std::string_view second_of(std::string_view line, std::string_view text) {
  const std::size_t at = line.find(text);
  if (at == std::string_view::npos) return {};
  const std::string_view head = line.substr(0, at);
  return head.substr(0, head.rfind('.'));
}

}  // namespace

std::string_view LogReader::kept(std::string text) { return kept_.emplace_back(std::move(text)); }

/// `text` is behind a date: "host kernel: text", "kernel: text", "stderr F line", or a line of its own.
LogReader::Message LogReader::after_date(std::string_view text, int depth) {
  for (const std::string_view stream : {"stderr F ", "stdout F "}) {
    if (text.starts_with(stream)) return unwrapped(text.substr(stream.size()), depth + 1);
  }
  constexpr std::string_view kKernel = "kernel:";
  if (text.starts_with(kKernel)) return unwrapped(text, depth + 1);
  std::string_view rest = without_blanks(text.substr(std::min(text.find(' '), text.size())));
  if (rest.starts_with("kern."))
    rest = without_blanks(rest.substr(std::min(rest.find(' '), rest.size())));  // BusyBox
  if (rest.starts_with(kKernel)) return unwrapped(rest, depth + 1);
  if (has_tag(text)) return {};
  return unwrapped(text, depth + 1);
}

LogReader::Message LogReader::of_json(std::string_view text, int depth) {
  JsonLine json;
  if (!json.read(text) || !json.is_kernel || !json.is_complete() || !json.line) return {};
  if (json.is_of_journal) return {true, kept(*std::move(json.line))};
  return unwrapped(kept(*std::move(json.line)), depth + 1);
}

LogReader::Message LogReader::unwrapped(std::string_view text, int depth) {
  if (depth > kDeepest) return {};
  text = without_blanks(text);
  if (text.starts_with('{') && text.size() > 1 && !is_digit(text[1])) return of_json(text, depth);
  std::string_view rest = text;
  if (skip_form(rest, "<") && !rest.empty() && is_digit(rest.front())) {
    const auto priority = take_number<unsigned>(rest);
    if (!priority || !skip_form(rest, ">") || !is_of_kernel(*priority)) return {};
    if (const auto structured = text_of_rfc5424(rest)) return {!structured->empty(), *structured};
    text = rest;
  }
  rest = text;
  if (const auto priority = take_number<unsigned>(rest); priority && skip_form(rest, ",9")) {
    // A record of /dev/kmsg.
    const std::size_t head = rest.find(';');
    if (head == std::string_view::npos || !is_of_kernel(*priority)) return {};
    return {true, rest.substr(head + 1)};
  }
  // "10.0.0.5: kern: warning: [2026-04-22T21:27:51Z]: text" of talosctl.
  const std::size_t node = text.substr(0, kLongestNode).find(": kern:");
  if (node != std::string_view::npos && text.find(' ') == node + 1) text.remove_prefix(node + 2);
  if (const std::string_view facility = take_decoded(text); !facility.empty() && facility != "kern")
    return {};
  if (skip_date(text)) return after_date(text, depth);
  constexpr std::string_view kKernel = "kernel:";
  if (text.starts_with(kKernel)) text = without_blanks(text.substr(kKernel.size()));
  bool is_stamped = false;
  while (skip_stamp(text)) is_stamped = true;
  if (is_stamped && text.starts_with(": ")) text = without_blanks(text.substr(1));
  if (text.starts_with(kKernel)) return unwrapped(text, depth + 1);
  // "[12345.678901] host kernel: text" of journalctl -o short-monotonic.
  rest = without_blanks(text.substr(std::min(text.find_first_of(" :"), text.size())));
  if (rest.starts_with("kernel: ")) return unwrapped(rest, depth + 1);
  return {!is_stamped || !has_tag(text), text};
}

LogReader::Message LogReader::message_of(std::string_view line) {
  kept_.clear();
  if (line.starts_with('\x1e')) line.remove_prefix(1);  // journalctl -o json-seq
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.find('\x1b') != std::string_view::npos) line = kept(without_colours(line));
  if (line.starts_with("/var/log/")) {  // grep's
    const std::size_t colon = line.find(':');
    line.remove_prefix(std::min(colon, line.size() - 1) + 1);
    std::string_view rest = line;
    skip_digits(rest);
    if (rest.size() < line.size() && skip_form(rest, ":")) line = rest;
  }
  while (line.starts_with('>')) line = without_blanks(line.substr(1));  // a quotation
  const bool continues = !line.empty() && is_blank(line.front());
  Message message = unwrapped(line, 0);
  if (continues && !was_kernel_) message.is_kernel = false;
  if (!continues) was_kernel_ = message.is_kernel;
  if (message.text.find("\\x") != std::string_view::npos)
    message.text = kept(unescaped(message.text.substr(0, 4 * kLongestText)));
  return message;
}

std::optional<Event> LogReader::take(std::string_view line) {
  constexpr std::string_view kBegin = "NVRM: The NVIDIA GPU ";
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const std::string before = std::exchange(fallen_, {});
  if (++lost_age_ > kMostLinesOfMessage) lost_.clear();
  const Message message = message_of(line.substr(0, kLongestLine));
  if (!message.is_kernel) return std::nullopt;
  std::optional<Event> event = parse(message.text);
  if (!event) {
    if (message.text.starts_with(kBegin)) {
      lost_ = pci_in(message.text);
      lost_age_ = 0;
    }
    return std::nullopt;
  }
  if (event->kind == Kind::off_bus && event->pci.empty()) event->pci = std::exchange(lost_, {});
  const std::string_view second = second_of(line, message.text);
  const std::string what = event->pci + " " + std::string(second);
  if (event->kind == Kind::off_bus && !second.empty() && what == before) return std::nullopt;
  if (event->kind == Kind::xid && event->code == 79) fallen_ = what;
  return event;
}

}  // namespace gpumeter::events

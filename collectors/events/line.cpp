#include "collectors/events/line.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <span>

#include "base/text.hpp"

namespace gpumeter::events {

namespace {

// A kernel's name of a process has 15 bytes; the driver's may be longer.
constexpr std::size_t kLongestName = 64;
// Codes have three digits so far, and those of switches five.
constexpr unsigned kHighestCode = 99999;

bool skip(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

std::string_view take_word(std::string_view& text) {
  const auto* const end = std::ranges::find_if_not(text, is_word);
  const std::string_view word = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(word.size());
  return word;
}

/// "0x1f" or "31".
std::optional<std::uint64_t> take_any_number(std::string_view& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::string_view rest = text.substr(2);
    const auto number = take_number<std::uint64_t>(rest, 16);
    if (number) text = rest;
    return number;
  }
  return take_number<std::uint64_t>(text);
}

std::string hex_digits(std::uint64_t value, std::size_t least) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (; value != 0 || text.size() < least; value >>= 4) text.insert(text.begin(), kDigits[value & 15]);
  return text;
}

/// "0000:3d:00", "0000:3d:00.0", in capitals, with the domain of a virtual machine ("00000001:00:00.0"), and
/// the "3d:00" of old drivers. The driver writes no function; GPUs are function 0.
std::optional<std::string> take_pci(std::string_view& text) {
  std::string_view rest = text;
  std::uint64_t parts[3];
  std::size_t count = 0;
  while (count < 3) {
    if (rest.empty() || !std::isxdigit(static_cast<unsigned char>(rest.front()))) return std::nullopt;
    const auto part = take_number<std::uint32_t>(rest, 16);
    if (!part) return std::nullopt;
    parts[count++] = *part;
    if (count == 3 || !skip(rest, ":")) break;
  }
  if (count < 2) return std::nullopt;
  if (count == 2) {
    parts[2] = parts[1];
    parts[1] = parts[0];
    parts[0] = 0;
  }
  // A bus has 32 devices; test lines have more ("0001:ab:cd").
  if (parts[1] > 0xFF || parts[2] > 0xFF) return std::nullopt;
  std::uint64_t function = 0;
  if (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1])) {
    function = static_cast<std::uint64_t>(rest[1] - '0') & 7;
    rest.remove_prefix(2);
  }
  text = rest;
  return hex_digits(parts[0], 4) + ":" + hex_digits(parts[1], 2) + ":" + hex_digits(parts[2], 2) + "." +
         hex_digits(function, 1);
}

/// The last address with a domain in the text: of the device that a port reports.
std::string last_pci_in(std::string_view text) {
  std::string found;
  while (!text.empty()) {
    std::string_view rest = text;
    const bool is_whole = rest.size() > 10 && rest[4] == ':' && rest[7] == ':' && rest[10] == '.';
    if (const auto pci = is_whole ? take_pci(rest) : std::nullopt) {
      found = *pci;
      text = rest;
    } else {
      text.remove_prefix(1);
    }
  }
  return found;
}

std::optional<unsigned> number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + word.size());
  return take_number<unsigned>(text);
}

void add_number(Event& event, std::uint64_t number) {
  if (event.number_count < kMostNumbers) event.numbers[event.number_count++] = number;
}

/// "(0x1 0x2)" and "(0x1, 0x2)", also without the closing bracket.
void take_numbers(std::string_view text, std::size_t most, Event& event) {
  for (; most > 0; --most) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,("), text.size()));
    const auto number = take_any_number(text);
    if (!number) return;
    add_number(event, *number);
  }
}

/// "pid=1234, name=python3, ", of which either may be missing. The name ends at a comma and is the program's
/// own choice.
void take_process(std::string_view& text, Event& event) {
  std::string_view rest = text;
  if (!skip(rest, "pid=")) return;
  if (const auto pid = take_any_number(rest); pid && *pid <= 0xFFFFFFFF) {
    event.pid = static_cast<std::uint32_t>(*pid);
  }
  take_until(rest, ',');
  skip_blanks(rest);
  if (skip(rest, "name=")) {
    const std::string_view name = first_bytes(take_until(rest, ','), kLongestName);
    if (name != "<unknown>") event.process = std::string(name);
    skip_blanks(rest);
  }
  text = rest;
}

std::optional<Grade> take_grade(std::string_view& text) {
  struct Word {
    std::string_view word;
    Grade grade;
  };
  constexpr Word kWords[] = {{"Nonfatal", Grade::nonfatal},
                             {"Non-fatal", Grade::nonfatal},
                             {"Non-Fatal", Grade::nonfatal},
                             {"Fatal", Grade::fatal},
                             {"Correctable", Grade::correctable}};
  for (const Word& each : kWords) {
    if (skip(text, each.word)) return each.grade;
  }
  return std::nullopt;
}

/// "Link 09", "Link -1": of all links.
std::optional<int> take_link(std::string_view& text) {
  if (!skip(text, "Link ")) return std::nullopt;
  skip_blanks(text);
  const auto link = take_number<int>(text);
  return link && *link >= -1 && *link < 1024 ? link : std::nullopt;
}

/// "NETIR_LINK_EVT  Fatal   XC0 i0 Link 09 (0x025525c6 0x00000000 ..)", and "XC 1 i 2 Link 01 [0x0000000a]".
bool read_nvlink5(std::string_view text, Event& event) {
  skip_blanks(text);
  std::string_view rest = text;
  while (!take_word(rest).empty() && skip(rest, "/")) {
  }
  const std::string_view unit = text.substr(0, text.size() - rest.size());
  if (unit.empty()) return false;
  skip_blanks(rest);
  const auto grade = take_grade(rest);
  if (!grade) return false;
  event.unit = std::string(first_bytes(unit, kLongestName));
  event.grade = *grade;
  const std::size_t link = rest.find("Link ");
  if (link == std::string_view::npos) return true;
  rest.remove_prefix(link);
  event.link = take_link(rest);
  rest.remove_prefix(std::min(rest.find_first_of("(["), rest.size()));
  if (rest.empty()) return true;
  take_numbers(rest.substr(1), 2, event);
  // Bits 20 to 25 of intrinfo.
  if (event.number_count > 0) event.subcode = static_cast<unsigned>(event.numbers[0] >> 20 & 0x3F);
  return true;
}

/// A name may hold a comma, so that the message begins at a later one.
void find_nvlink5(std::string_view text, Event& event) {
  while (!read_nvlink5(text, event)) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

void read_place(std::string_view text, Event& event) {
  const std::size_t at = text.find("(GPC ");
  if (at == std::string_view::npos) return;
  text.remove_prefix(at);
  for (const std::string_view unit : {"GPC ", "TPC ", "SM "}) {
    const auto number = number_after(text, unit);
    if (!number) return;
    add_number(event, *number);
  }
}

/// What the messages of single codes have (Event::numbers).
void read_details(std::string_view text, Event& event) {
  const unsigned code = *event.code;
  if (code >= 144 && code <= 150) return find_nvlink5(text, event);
  if (code == 13) return read_place(text, event);
  if (code == 45) event.cause = number_after(text, "caused by previous Xid ");
  if (code == 74 || code == 136) {
    event.link = number_after(text, "link ");
    const std::size_t registers = text.find('(');
    if (registers != std::string_view::npos) take_numbers(text.substr(registers + 1), 7, event);
  }
  if (code == 94 || code == 95) {
    const std::size_t reset = text.find(" RST: ");
    if (reset != std::string_view::npos) add_number(event, text.substr(reset + 6).starts_with("Yes") ? 1 : 0);
  }
  if (code == 119) {
    if (const auto function = number_after(text, "xpected function ")) add_number(event, *function);
  }
  if (code == 154) {
    const std::size_t changed = text.find("changed from ");
    const std::size_t to = changed == std::string_view::npos ? changed : text.find(" to ", changed);
    if (to != std::string_view::npos) take_numbers(text.substr(to + 4), 1, event);
  }
}

/// "(PCI:0000:01:00 GPU-I:05 GPU-CI:00)", and "(0000:03:00)" of drivers before 300.
bool take_xid_device(std::string_view& text, Event& event) {
  if (!skip(text, "(")) return false;
  skip(text, "PCI:");
  const auto pci = take_pci(text);
  if (!pci) return false;
  event.pci = *pci;
  if (skip(text, " GPU-I:")) event.gpu_instance = take_number<unsigned>(text);
  if (skip(text, " GPU-CI:")) event.compute_instance = take_number<unsigned>(text);
  return skip(text, ")");
}

/// `text` is behind "NVRM: Xid ".
std::optional<Event> read_xid(std::string_view text) {
  Event event{.kind = Kind::xid, .vendor = "nvidia"};
  if (!take_xid_device(text, event) || !skip(text, ":")) return std::nullopt;
  skip_blanks(text);
  event.code = take_number<unsigned>(text);
  if (!event.code || *event.code == 0 || *event.code > kHighestCode) return std::nullopt;
  if (!text.empty() && is_word(text.front())) return std::nullopt;
  text.remove_prefix(std::min(text.find_first_not_of(", \t"), text.size()));
  take_process(text, event);
  read_details(text, event);
  return event;
}

/// "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error". Lines
/// with details of an error that another line has reported are no event.
std::optional<Event> read_sxid(std::string_view text) {
  take_number<unsigned>(text);
  if (!skip(text, ": SXid (")) return std::nullopt;
  skip(text, "PCI:");
  const auto pci = take_pci(text);
  if (!pci || !skip(text, "):")) return std::nullopt;
  skip_blanks(text);
  Event event{.kind = Kind::sxid, .vendor = "nvidia", .pci = *pci, .code = take_number<unsigned>(text)};
  if (!event.code || *event.code > kHighestCode) return std::nullopt;
  if (trimmed(text).empty()) return event;
  if (!skip(text, ",")) return std::nullopt;
  skip_blanks(text);
  if (const auto grade = take_grade(text)) {
    event.grade = *grade;
    text.remove_prefix(std::min(text.find_first_not_of(", "), text.size()));
    event.link = take_link(text);
    return event;
  }
  const bool is_detail = text.starts_with("Severity ") || text.find("Data {") != std::string_view::npos ||
                         text.find(" data[") != std::string_view::npos;
  return is_detail ? std::nullopt : std::optional(event);
}

/// Who wrote a message, and the message itself.
struct Written {
  std::string_view driver;
  std::string pci;
  std::string_view text;
};

/// Removes "[drm]", "[drm:function]" and "[drm:function [driver]]", and takes the driver.
bool skip_drm(Written& written) {
  std::string_view& text = written.text;
  if (!text.starts_with("[drm]") && !text.starts_with("[drm:")) return false;
  const std::size_t end = std::min(text.find(']'), text.size() - 1);
  const std::size_t open = text.substr(0, end).find(" [");
  if (open != std::string_view::npos && written.driver.empty())
    written.driver = text.substr(open + 2, end - open - 2);
  text.remove_prefix(end + 1);
  if (open != std::string_view::npos) skip(text, "]");
  skip(text, ":");
  return true;
}

/// Removes the marks of DRM, "*ERROR*", the marks of PCI Express, and a second name of the driver.
void skip_decoration(Written& written) {
  std::string_view& text = written.text;
  while (true) {
    skip_blanks(text);
    if (skip_drm(written) || skip(text, "*ERROR*") || skip(text, "AER:") || skip(text, "Multiple ")) continue;
    std::string_view rest = text;
    if (written.driver.empty() || !skip(rest, written.driver) || !skip(rest, ":")) return;
    text = rest;
  }
}

/// "amdgpu 0000:08:00.0: amdgpu: text", "mlx5_core 0000:5c:00.0 eth2: text", "[drm] text", "NVRM: text".
std::optional<Written> who_wrote(std::string_view text) {
  Written written{{}, {}, text};
  if (!text.starts_with("[drm")) {
    std::string_view rest = text;
    written.driver = take_word(rest);
    if (written.driver.empty()) return std::nullopt;
    if (skip(rest, " ")) {
      const auto pci = take_pci(rest);
      if (!pci) return std::nullopt;
      written.pci = *pci;
      if (skip(rest, " ")) take_word(rest);  // a network interface
    }
    if (!skip(rest, ":")) return std::nullopt;
    written.text = rest;
  }
  skip_decoration(written);
  return written;
}

struct Driver {
  std::string_view name, vendor;
};
constexpr Driver kDrivers[] = {{"NVRM", "nvidia"},     {"nvidia", "nvidia"}, {"nvidia-uvm", "nvidia"},
                               {"amdgpu", "amd"},      {"radeon", "amd"},    {"i915", "intel"},
                               {"xe", "intel"},        {"pcieport", ""},     {"mlx5_core", "mellanox"},
                               {"bnxt_en", "broadcom"}};

/// True also for no driver: "[drm] text".
bool is_known(std::string_view driver) {
  return driver.empty() || std::ranges::find(kDrivers, driver, &Driver::name) != std::end(kDrivers);
}

std::string_view vendor_of(std::string_view driver) {
  return std::ranges::find(kDrivers, driver, &Driver::name)->vendor;
}

/// The device of which a message speaks: that of a port's report is behind "received".
std::string device_of(const Written& written, const Message& message) {
  if (message.kind == Kind::aer && !written.text.starts_with("PCIe Bus Error")) {
    std::string reported = last_pci_in(written.text);
    // A port that does not know the sender names 0000:00:00.0.
    if (!reported.empty() && reported != "0000:00:00.0") return reported;
  }
  return written.pci.empty() ? pci_in(written.text) : written.pci;
}

/// A card that sleeps reads as ones, so that each of its channels counts 65535 errors more.
bool is_no_count(std::uint64_t errors) {
  constexpr std::uint64_t kUnread = 0xFFFF;
  return errors % kUnread == 0;
}

std::optional<Event> read_message(std::string_view text) {
  const std::optional<Written> written = who_wrote(text);
  if (!written || !is_known(written->driver)) return std::nullopt;
  // "[drm] GPU HANG: .." names no driver: its text decides.
  constexpr std::string_view kSilent[] = {"amdgpu", "i915", "xe"};
  const std::span<const std::string_view> candidates =
      written->driver.empty() ? std::span<const std::string_view>(kSilent)
                              : std::span<const std::string_view>(&written->driver, 1);
  for (const std::string_view driver : candidates) {
    Event event;
    std::span<std::uint64_t> numbers(event.numbers);
    const Message* const message = find_message(driver, written->text, numbers);
    if (message == nullptr) continue;
    if (message->kind == Kind::ras && numbers.size() == 1 && is_no_count(numbers[0])) return std::nullopt;
    event.kind = message->kind;
    event.vendor = vendor_of(driver);
    event.pci = device_of(*written, *message);
    event.number_count = numbers.size();
    event.message = message;
    return event;
  }
  return std::nullopt;
}

/// The XID of the first line of the record that has one.
std::optional<Event> find_xid(std::string_view text) {
  constexpr std::string_view kXid = "NVRM: Xid ";
  while (!text.empty()) {
    std::string_view line = trimmed(take_until(text, '\n'));
    if (!skip(line, kXid)) continue;
    if (auto event = read_xid(line)) return event;
  }
  return std::nullopt;
}

Verdict worst_of(const Event& event, const Xid& xid) {
  const bool is_fatal = event.grade == Grade::fatal;
  // The highest bit of errorstatus says nothing.
  const std::uint64_t status = event.number_count > 1 ? event.numbers[1] & 0x7FFFFFFF : 0;
  const NvlinkRule* worst = nullptr;
  for (const NvlinkRule& rule : nvlink_rules()) {
    std::string_view unit = event.unit;
    const bool is_unit = rule.xid == event.code && skip(unit, rule.unit) &&
                         (unit.empty() || unit.front() == '/' || unit.starts_with("_PIPE"));
    if (!is_unit || event.number_count == 0) continue;
    if (rule.subcodes != 0 && (rule.subcodes >> event.subcode.value_or(0) & 1) == 0) continue;
    if (rule.is_exact ? status != rule.status : rule.status != 0 && (status & rule.status) == 0) continue;
    if (worst == nullptr || rule.resolution > worst->resolution) worst = &rule;
    if (rule.is_exact) break;
  }
  const bool is_known_bit = event.number_count > 1 && event.numbers[1] == 0x80000000;
  if (worst == nullptr && is_fatal && !is_known_bit)
    return {Severity::failed, Action::reset, xid.meaning, "no rule decodes this message, which says fatal"};
  if (worst == nullptr && event.grade == Grade::absent) return {xid.severity, xid.action, xid.meaning, {}};
  if (worst != nullptr && worst->resolution == Resolution::reset)
    return {Severity::failed, Action::reset, xid.meaning, worst->hint};
  const bool ends_job = worst != nullptr && worst->resolution == Resolution::follow;
  return {is_fatal ? Severity::degraded : Severity::none, ends_job ? Action::restart_job : Action::none,
          xid.meaning, worst != nullptr ? worst->hint : std::string_view()};
}

/// NVIDIA, "XID errors", XID 74: register 0 and others, of which only one alone means little.
std::string_view hint_of_link(const Event& event) {
  const auto has = [&event](std::size_t place, std::uint64_t mask) {
    return place < event.number_count && (event.numbers[place] & mask) != 0;
  };
  if (has(0, 1U << 4 | 1U << 5)) return "ECC or parity: contact support if it repeats on this link";
  if (has(0, 0x11031300) || has(2, 0x47))
    return "likely hardware: look at the link's connectors if it repeats";
  if (has(0, 1U << 21 | 1U << 22)) return "the link's signal is marginal: look at its connectors";
  if (has(0, 1U << 1 | 1U << 20) || has(2, 1U << 13) || has(3, 1U << 18)) return "contact support";
  return {};
}

/// NVIDIA: bits 0, 23 and 30 of the first register "can be safely ignored".
bool is_harmless_link_error(const Event& event) {
  const auto rest = std::span(event.numbers).first(event.number_count);
  constexpr std::uint64_t kIgnored = 1U | 1U << 23 | 1U << 30;
  return !rest.empty() && rest[0] != 0 && (rest[0] & ~kIgnored) == 0 &&
         std::ranges::all_of(rest.subspan(1), [](std::uint64_t each) { return each == 0; });
}

Verdict verdict_of_xid(const Event& event) {
  const Xid& xid = xid_of(event.code.value_or(0));
  const unsigned code = event.code.value_or(0);
  if (code >= 144 && code <= 150) return worst_of(event, xid);
  if (code == 74 && is_harmless_link_error(event))
    return {Severity::none, Action::none, xid.meaning, "NVIDIA ignores these bits"};
  if (code == 74) return {xid.severity, xid.action, xid.meaning, hint_of_link(event)};
  if (code == 94 && event.number_count > 0 && event.numbers[0] == 1)
    return {Severity::failed, Action::reset, xid.meaning, "the driver requires a reset"};
  if (code == 154 && event.number_count > 0) {
    const RecoveryAction& recovery = recovery_action_of(event.numbers[0]);
    return {recovery.severity, recovery.action, recovery.meaning, {}};
  }
  return {xid.severity, xid.action, xid.meaning, {}};
}

Verdict verdict_of_sxid(const Event& event) {
  constexpr std::string_view kUnknown = "an error of an NVSwitch";
  const Sxid* const sxid = sxid_of(event.code.value_or(0));
  const std::string_view meaning = sxid != nullptr ? sxid->meaning : kUnknown;
  const bool is_harmless = event.grade == Grade::nonfatal || event.grade == Grade::correctable;
  if (sxid != nullptr && (!is_harmless || sxid->action == Action::none))
    return {sxid->severity, sxid->action, meaning, {}};
  if (is_harmless) return {Severity::none, Action::none, sxid != nullptr ? "not fatal" : kUnknown, {}};
  if (event.grade == Grade::absent) return {Severity::degraded, Action::none, meaning, {}};
  return {Severity::failed, Action::reset, meaning, {}};
}

}  // namespace

std::string pci_in(std::string_view text) {
  for (const bool is_short : {false, true}) {
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(1)) {
      std::string_view address = rest;
      const std::size_t colon = address.find(':');
      const bool is_whole =
          colon >= 4 && colon <= 8 && address.size() > colon + 5 && address[colon + 3] == ':';
      const bool is_slot = colon == 2 && address.size() > colon + 4 && address[colon + 3] == '.';
      if (!(is_short ? is_slot : is_whole)) continue;
      if (const auto pci = take_pci(address)) return *pci;
    }
  }
  return {};
}

std::optional<Event> parse(std::string_view text) {
  text = trimmed(text.substr(0, kLongestText));
  constexpr std::string_view kSwitch = "nvidia-nvswitch";
  std::optional<Event> event = find_xid(text);
  if (!event && text.starts_with(kSwitch)) event = read_sxid(text.substr(kSwitch.size()));
  if (!event) event = read_message(text);
  if (event) event->text = std::string(first_bytes(text, kLongestText));
  return event;
}

Verdict verdict_of(const Event& event) noexcept {
  if (event.kind == Kind::xid) return verdict_of_xid(event);
  if (event.kind == Kind::sxid) return verdict_of_sxid(event);
  if (event.message == nullptr) return {};
  return {event.message->severity, event.message->action, event.message->meaning, {}};
}

}  // namespace gpumeter::events

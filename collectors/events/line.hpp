#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/events/catalogue.hpp"

/// Reads single messages of the kernel's log. Pure: no clock, no files. Any thread.
namespace gpumeter::events {

/// The word for its own severity that a line of a link or a switch has.
enum class Grade : std::uint8_t { absent, correctable, nonfatal, fatal };

/// The longest text that an event keeps; longer ones are cut between characters.
inline constexpr std::size_t kLongestText = 512;
inline constexpr std::size_t kMostNumbers = 8;

/// One event, as its message states it. Everything in it is as untrusted as the message.
struct Event {
  Kind kind = Kind::xid;
  std::string_view vendor;          ///< "nvidia", "amd", "intel", "mellanox", "broadcom"; empty: a bridge
  std::string pci;                  ///< "0000:3d:00.0"; empty: the message names no device
  std::optional<unsigned> code;     ///< of an XID or SXID
  std::optional<unsigned> subcode;  ///< of an XID of NVLink 5
  std::optional<int> link;          ///< NVLink, or the port of an NVSwitch; -1: all
  std::optional<unsigned> gpu_instance, compute_instance;  ///< of MIG
  std::optional<std::uint32_t> pid;
  std::string process;            ///< its name, of at most 64 bytes; empty: not stated
  std::optional<unsigned> cause;  ///< the XID that an XID 45 follows from
  std::string unit;               ///< of NVLink 5: "NETIR_LINK_EVT"
  Grade grade = Grade::absent;
  /// XID 13: GPC, TPC, SM. 74: the link's registers 0 to 6. 94, 95: 1 if a reset is required. 119: the
  /// function. 144 to 150: intrinfo and errorstatus. 154: the new recovery action. Messages: the numbers of
  /// their pattern.
  std::array<std::uint64_t, kMostNumbers> numbers{};
  std::size_t number_count = 0;
  std::string text;                  ///< the message, at most kLongestText
  const Message* message = nullptr;  ///< the row; null for XIDs and SXIDs
};

/// Returns the event of a message: the text of a record of /dev/kmsg, unescaped, without its head; it may
/// have several lines. nullopt if it is none. The caller makes sure that the kernel wrote it.
std::optional<Event> parse(std::string_view text);

/// The first PCI address in the text, "0000:3d:00.0"; empty: there is none.
std::string pci_in(std::string_view text);

/// What an event alone says about its device. Repetition and what follows are the reader's to judge.
struct Verdict {
  Severity severity = Severity::none;
  Action action = Action::none;
  std::string_view meaning;  ///< static
  std::string_view hint;     ///< where to look next; static, often empty
};
Verdict verdict_of(const Event& event) noexcept;

}  // namespace gpumeter::events

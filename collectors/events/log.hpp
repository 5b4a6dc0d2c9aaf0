#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/events/line.hpp"

/// Reads logs as tools print and store them: dmesg and journalctl in all their formats, syslog files, records
/// of /dev/kmsg, and JSON around any of them.
namespace gpumeter::events {

/// The longest line that is read; the rest of a longer line is ignored.
inline constexpr std::size_t kLongestLine = std::size_t{64} << 10;

/// Lines of a log, in their order. One thread.
class LogReader {
 public:
  /// Returns the event of the next line, without its line end. nullopt: the line is none, user space wrote
  /// it, or it repeats the XID 79 of the line before, in the same second.
  std::optional<Event> take(std::string_view line);

 private:
  struct Message {
    bool is_kernel = false;
    std::string_view text;  ///< of the line, or of `kept_`
  };
  Message message_of(std::string_view line);
  Message unwrapped(std::string_view text, int depth);
  Message of_json(std::string_view text, int depth);
  Message after_date(std::string_view text, int depth);
  std::string_view kept(std::string text);

  std::deque<std::string> kept_;  ///< the texts that views of the line refer to
  bool was_kernel_ = true;        ///< the last line with a head
  std::string lost_;              ///< the GPU of which "The NVIDIA GPU 0000:b3:00.0" began to speak
  unsigned lost_age_ = 0;         ///< lines since
  std::string fallen_;            ///< the GPU of the XID 79 in the line before, and when that was written
};

}  // namespace gpumeter::events

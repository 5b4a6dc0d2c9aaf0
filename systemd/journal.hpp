#pragma once

#include <span>
#include <string>

namespace gpumeter::systemd {

/// Whether the descriptor is the stream that systemd connected to the journal, by what it says in
/// $JOURNAL_STREAM ("device:inode"; null or empty: not under systemd). A descriptor that was redirected
/// later is another file and is not.
bool is_journal_stream(int fd, const char* journal_stream) noexcept;

/// Sends one entry of "NAME=value" fields to the journal by its native protocol. 0, or a negative errno.
/// Where there is no journal at all, nothing is sent and that is no error. Any thread.
int send_to_journal(std::span<const std::string> fields);

}  // namespace gpumeter::systemd

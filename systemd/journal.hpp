#pragma once

#include <span>
#include <string>

namespace gpumeter::systemd {

/// Returns true if the descriptor is the stream that systemd connected to the journal and named in
/// $JOURNAL_STREAM ("device:inode"; null or empty: not under systemd). Returns false if the descriptor was
/// redirected later.
bool is_journal_stream(int fd, const char* journal_stream) noexcept;

/// Sends one entry of "NAME=value" fields to the journal by its native protocol. Returns false if the journal
/// rejects it. On a machine without a journal, the function sends nothing and returns true. Any thread.
bool send_to_journal(std::span<const std::string> fields);

}  // namespace gpumeter::systemd

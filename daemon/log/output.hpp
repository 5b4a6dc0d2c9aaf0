#pragma once

#include <string_view>

namespace gpumeter {

/// True if stderr is the stream that systemd connected to the journal.
bool stderr_is_journal();

/// Writes all of the text to stderr by the descriptor alone: a stalled reader must not hold a lock of stdio.
/// Blocks while the reader does not read. Returns false if stderr accepts no more data.
bool write_to_stderr(std::string_view text);

/// Sends an entry encoded by to_journal(). May block. If the journal rejects the entry, it goes to stderr.
/// Returns false if the entry is lost.
bool write_to_journal(std::string_view entry);

}  // namespace gpumeter

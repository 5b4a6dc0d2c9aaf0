#pragma once

#include <string_view>

namespace gpumeter {

/// Whether stderr is the stream that systemd connected to the journal.
bool stderr_is_journal();

/// Writes all of the text to stderr, by the descriptor alone: a stalled reader must hold no lock of stdio.
/// Blocks for as long as the reader does not read. False: stderr takes no more.
bool write_to_stderr(std::string_view text);

/// Sends an entry as to_journal() encodes it. May block. An entry that the journal rejects goes to stderr.
/// False: lost.
bool write_to_journal(std::string_view entry);

}  // namespace gpumeter

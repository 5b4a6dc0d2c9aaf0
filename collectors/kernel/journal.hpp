#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::kernel {

/// A message of the kernel in the journal.
struct JournalLine {
  Nanoseconds time;  ///< since 1970
  std::string text;
};

/// The last kernel messages of the boot before this one, the oldest first: at most `most`, not older than a
/// day before that boot's end. Empty if there is no journal, or the process may not read it (group
/// systemd-journal). `folder`: of journal files; empty: the system's. `boot`: the present boot's id, 32
/// hexadecimal digits. Reads files, up to some 100 ms.
std::vector<JournalLine> lines_of_previous_boot(const std::string& folder, const std::string& boot,
                                                std::size_t most);

}  // namespace gpumeter::kernel

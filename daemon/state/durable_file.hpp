#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

/// Files of the state folder. Every call blocks for as long as the folder does: thread "state", and commands.
namespace gpumeter {

/// Returns the contents of a regular file of at most `most` bytes.
Result<std::string> read_state_file(const std::string& path, std::size_t most);

/// The event that a file must outlive.
enum class Outlives {
  power_cut,  ///< fsync(2) before and after the rename
  crash,      ///< of this process: the kernel keeps the data, so nothing is synced
};

/// Replaces a file of the folder atomically: after the event it is the old one or the new one. The file gets
/// the owner of the folder, so that the service can read what root wrote. Creates the folder if it is
/// missing.
Result<Done> replace_state_file(const std::string& folder, const std::string& name, const std::string& text,
                                Outlives event = Outlives::power_cut);

/// Renames a damaged file to NAME.bad, so that a person can examine it.
void set_aside(const std::string& path);

/// Returns the id in a file as described by machine-id(5); empty if the machine has none yet.
std::string machine_id_in(const std::string& path);

}  // namespace gpumeter

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/folder.hpp"
#include "base/result.hpp"

/// Files of the state folder. Every call blocks for as long as the folder does: thread "state", and commands.
namespace gpumeter {

/// As StateDirectoryMode= of the service.
inline constexpr mode_t kStateFolderMode = 0750;

/// Returns the contents of a regular file of at most `most` bytes.
Result<std::string> read_state_file(const std::string& path, std::size_t most);

/// Replaces a file of the folder atomically. It gets the owner of the folder, so that the service can read
/// what root wrote. Creates the folder if it is missing.
Result<Done> replace_state_file(const std::string& folder, const std::string& name, const std::string& text,
                                Folder::Outlives event = Folder::Outlives::power_cut);

/// Renames a damaged file to NAME.bad, so that a person can examine it.
void set_aside(const std::string& path);

/// Returns the id in a file as described by machine-id(5); empty if the machine has none yet.
std::string machine_id_in(const std::string& path);

}  // namespace gpumeter

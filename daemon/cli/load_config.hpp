#pragma once

#include <string>
#include <vector>

#include "collectors/attribution/names/known_users.hpp"
#include "config/load.hpp"
#include "daemon/cli/options.hpp"

namespace gpumeter {

/// Flags override the file.
void apply(const Options& options, config::Schemas schemas, config::Config& config);

/// The configuration of these options: the file that they name, which must exist, or the default file if it
/// exists, or the defaults; with the flags applied. `places`, unless null, is filled in.
config::Loaded load_config(const Options& options, config::Schemas schemas, config::Places* places = nullptr);

/// load_config() for the built-in collectors, then the checks that need more than the file: the collectors'
/// own keys, and whether the users of `jobs.users` exist. Their uids are added to the list, so that it holds
/// while the name service is down. Users that could not be looked up pass; `notes` names them. For the start
/// and for every reload. Waits for the name service, for KnownUsers::kPatience at most.
config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes);

}  // namespace gpumeter

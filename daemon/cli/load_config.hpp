#pragma once

#include <string>
#include <vector>

#include "collectors/attribution/names/user_names.hpp"
#include "config/load.hpp"
#include "daemon/cli/options.hpp"

namespace gpumeter {

/// Applies the flags, which override the file.
void apply(const Options& options, const config::Schema& schema, config::Config& config);

/// Returns the configuration with the flags applied. The options may name a file, which must exist. Otherwise
/// the default file is used if it exists, and otherwise the defaults. `places`, unless null, is filled in.
config::Loaded load_config(const Options& options, const config::Schema& schema,
                           options::Places* places = nullptr);

/// Calls load_config() for the built-in collectors, then checks the collectors' own keys and whether the
/// users of `jobs.users` exist. The users' uids are added to the list, so that the list works while the name
/// service is down. Users whose lookup fails are accepted; `notes` names them. For the start and for every
/// reload. Waits for the name service for at most KnownUsers::kPatience.
config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes);

}  // namespace gpumeter

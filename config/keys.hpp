#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/codec.hpp"
#include "config/config.hpp"
#include "config/schema.hpp"

namespace gpumeter::config {

/// One key of the file. Parsing, the search for unknown keys, flags, reload and docs/configuration.md all
/// read the one table below.
struct Key {
  std::string path;  ///< "web.listen"
  bool reloadable;   ///< SIGHUP takes a change on; otherwise it needs a restart
  std::string type;  ///< in words
  bool is_list;
  std::string_view help;
  /// Leaves the configuration as it is if it complains.
  std::function<Complaint(const Node&, Config&)> read;
  std::function<std::string(const Config&)> show;
};

/// The keys in the order of the documentation, those of the collectors last. `schemas` must outlive the keys.
std::vector<Key> keys(Schemas schemas = {});

/// nullptr: there is no such key.
const Key* find_key(std::span<const Key> keys, std::string_view path) noexcept;

/// Sets a key from outside the file, such as the command line. Exactly one value unless the key is a list.
Complaint set(std::span<const Key> keys, Config& config, std::string_view path,
              std::span<const std::string> values);

/// The paths of the keys that differ and that a reload does not take on.
std::vector<std::string> restart_needed(const Config& running, const Config& wanted);

}  // namespace gpumeter::config

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

/// One key of the file. Parsing, the search for unknown keys, flags, reload and docs/configuration.md all use
/// the one table below.
struct Key {
  std::string path;  ///< "web.listen"
  bool reloadable;   ///< a reload (SIGHUP) applies a change; otherwise it needs a restart
  std::string type;  ///< in words
  bool is_list;
  std::string_view help;
  /// Leaves the configuration unchanged if it returns a complaint.
  std::function<Complaint(const Node&, Config&)> read;
  std::function<std::string(const Config&)> show;
};

/// Returns the keys in the order of the documentation, the collectors' keys last. `schemas` must outlive the
/// keys.
std::vector<Key> keys(Schemas schemas = {});

/// Returns nullptr if no such key exists.
const Key* find_key(std::span<const Key> keys, std::string_view path) noexcept;

/// Sets a key from outside the file, such as the command line. Requires exactly one value unless the key is a
/// list.
Complaint set(std::span<const Key> keys, Config& config, std::string_view path,
              std::span<const std::string> values);

/// Returns the paths of the keys that differ and that a reload cannot apply.
std::vector<std::string> restart_needed(const Config& running, const Config& wanted);

}  // namespace gpumeter::config

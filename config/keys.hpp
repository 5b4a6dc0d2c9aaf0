#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace gpumeter::config {

/// One key of the file. Parsing, the search for unknown keys, flags, reload and docs/configuration.md all use
/// the same rows.
struct Key {
  std::string path;  ///< "web.listen"
  options::Reload reload;
  std::string type;  ///< in words
  bool is_list;
  std::string_view help;
  /// Leaves the value unchanged if it returns a complaint.
  std::function<options::Complaint(const options::Node&, Config&)> read;
  std::function<std::string(const Config&)> show;
};

/// Returns the keys in the order of the documentation, the collectors' keys last. `schema` must outlive them.
std::vector<Key> keys(const Schema& schema);

/// Returns nullptr if no such key exists.
const Key* find_key(std::span<const Key> keys, std::string_view path) noexcept;

/// Sets a key from outside the file, such as the command line. Requires exactly one value unless the key is a
/// list.
options::Complaint set(std::span<const Key> keys, Config& config, std::string_view path,
                       std::span<const std::string> values);

/// Returns the paths of the keys that differ and that a reload cannot apply.
std::vector<std::string> restart_needed(const Schema& schema, const Config& running, const Config& wanted);

/// Returns docs/configuration.md: every key with its type, default and whether a reload applies it.
std::string configuration_markdown(const Schema& schema);

}  // namespace gpumeter::config

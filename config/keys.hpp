#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/codec.hpp"
#include "config/config.hpp"

namespace gpumeter::config {

/// One key of the file. Parsing, the search for unknown keys, flags, reload and docs/configuration.md all
/// read the one table below; the collectors' own keys come from their schemas.
struct Key {
  std::string_view path;  ///< "web.listen"
  bool reloadable;        ///< SIGHUP takes a change on; else it needs a restart
  std::string_view type;  ///< in words
  bool is_list;
  Complaint (*read)(const Node&, Config&);
  std::string (*show)(const Config&);
  std::string_view help;
};

std::span<const Key> keys() noexcept;

/// nullptr where there is no such key.
const Key* find_key(std::string_view path) noexcept;

/// Sets a key from outside of the file, from the command line say. One value for a key that is no list.
Complaint set(Config& config, std::string_view path, std::span<const std::string> values);

/// The paths of the keys that differ and that a reload does not take on.
std::vector<std::string> restart_needed(const Config& running, const Config& wanted);

}  // namespace gpumeter::config

#pragma once

#include <any>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_schema.hpp"
#include "base/options.hpp"

namespace gpumeter::config {

using options::Enabled;
using options::Places;
using options::Problem;

struct CollectorConfig {
  Enabled enabled = Enabled::automatic;
  /// Holds every key of the collector's schema, checked against its kind. A plain value is a list of one; an
  /// empty list has no values.
  std::map<std::string, std::vector<std::string>> options;
  bool operator==(const CollectorConfig&) const = default;
};

/// The values of a file: the settings of each section, in their owners' types. A section that is not in the
/// file has its defaults.
class Config {
 public:
  template <class Settings>
  const Settings& of() const {
    return *static_cast<const Settings*>(at(options::kSettingsType<Settings>));
  }
  template <class Settings>
  Settings& edit() {
    return *static_cast<Settings*>(edit(options::kSettingsType<Settings>));
  }
  const void* at(const options::SettingsType& type) const;
  void* edit(const options::SettingsType& type);

  std::map<std::string, CollectorConfig> collectors;  ///< one entry for every known collector

  bool operator==(const Config& other) const;

 private:
  std::map<const options::SettingsType*, std::any> settings_;  ///< those that edit() was called for
};

/// The keys allowed under `collectors.<name>` in addition to `enabled`.
struct CollectorSchema {
  std::string name;
  std::vector<OptionSchema> options;
};

/// The keys of a file, in the order of the documentation. The program passes them in, because this folder
/// knows no subject.
struct Schema {
  std::span<const options::Section* const> sections;
  std::vector<CollectorSchema> collectors = {};
  /// The file has sections of other programs too, which are not read.
  bool is_partial = false;
};

/// Returns the configuration of an empty file: the defaults, including those of every collector.
Config defaults(const Schema& schema);

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

/// The outcome of reading a file. The configuration may be put in force only if there are no problems. Keys
/// with a problem have their defaults, so that further checks can look at the others.
struct Loaded {
  Config config;
  std::vector<Problem> problems = {};  ///< in the order of the file's lines
  Places places = {};
};

/// Reads a configuration. Missing and empty keys and sections keep their defaults. Unknown and duplicate
/// keys, wrong types and bad values are problems. `file` is the file name in the problems.
Loaded load_text(std::string_view text, const std::string& file, const Schema& schema);

/// Reads a file of at most 1 MiB in the same way.
Loaded load_file(const std::string& file, const Schema& schema);

}  // namespace gpumeter::config

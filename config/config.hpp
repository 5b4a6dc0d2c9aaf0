#pragma once

#include <any>
#include <map>
#include <span>
#include <string>
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

}  // namespace gpumeter::config

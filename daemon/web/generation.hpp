#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/options.hpp"
#include "exporter/access/settings.hpp"

namespace gpumeter {

/// One attempt to load the web configuration.
struct WebAttempt {
  /// Null if there are problems.
  std::shared_ptr<const WebGeneration> generation;
  std::vector<options::Problem> problems;
  std::vector<std::string> notes;  ///< settings without effect, one sentence each
  std::vector<std::string> files;  ///< all files that the outcome depends on
};

/// Reads the file and those that it names, and makes what TLS needs. `old`, unless null, is reused if the
/// settings are the same. Blocks for the file system.
WebAttempt load_generation(const std::string& file,
                           const std::shared_ptr<const WebGeneration>& old = nullptr);

}  // namespace gpumeter

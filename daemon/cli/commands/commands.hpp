#pragma once

#include <array>
#include <memory>
#include <optional>

#include "daemon/cli/options.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace gpumeter {

class Command;

/// All commands. `app` and `options` must outlive this object.
class Commands {
 public:
  Commands(CLI::App& app, Options& options);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  /// After app.parse(). nullopt: no command, or a complete one.
  std::optional<Exit> take(Options& options) const;

 private:
  std::array<std::unique_ptr<Command>, 6> all_;
};

}  // namespace gpumeter

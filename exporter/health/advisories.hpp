#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include "exporter/health/conditions.hpp"

/// What is known of a driver's versions on a model, or of a sensor with every driver. An advisory is
/// information for whoever plans an update or a reboot: it changes no state and asks for no action.
namespace gpumeter::health {

struct Advisory {
  std::string_view name;
  std::string_view models;  ///< how a word of the model's name begins, with a | between several; empty: all
  std::string_view from;   ///< the first driver version; empty: any driver, also of other vendors than NVIDIA
  std::string_view below;  ///< the first that is not concerned; empty: all later ones are
  std::chrono::hours uptime{0};  ///< of the machine, at least
  Term terms[2]{};               ///< hold too
  std::string_view text;         ///< one sentence
  std::string_view source;       ///< where it is reported
};

std::span<const Advisory> advisories() noexcept;

/// Whether it concerns a device with this driver on a machine that has run so long.
bool concerns(const Advisory& advisory, std::string_view model, std::string_view driver,
              std::chrono::nanoseconds uptime);

}  // namespace gpumeter::health

#pragma once

#include "collectors/api/part.hpp"

namespace gpumeter::health {

/// Judges the devices once a second, publishes gpu_health, gpu_health_reason and Machine::health, and logs
/// each reason when it begins and when it ends. Keeps the events that only the daemon has counted, such as
/// XIDs: they are news for as long after a restart of the daemon as without it, until the machine boots,
/// which resets the GPUs.
extern const PartEntry kPart;

}  // namespace gpumeter::health

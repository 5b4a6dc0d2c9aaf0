#pragma once

#include "collectors/api/part.hpp"

namespace gpumeter::profiles {

/// Profiles of jobs, on request (`gpumeter profile`) and by condition.
extern const PartEntry kPart;

/// Takes the socket of `gpumeter profile` that systemd created (FileDescriptorName=profiles), if there is
/// one, which then serves in place of `profiles.socket`. Before the first thread.
void take_passed_socket();

}  // namespace gpumeter::profiles

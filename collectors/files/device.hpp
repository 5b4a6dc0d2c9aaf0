#pragma once

#include <memory>

#include "collectors/api/collector.hpp"
#include "collectors/files/context.hpp"

namespace gpumeter::files {

/// A device of that kind. It lists processes if its clients are scanned or `attached` knows some. A kind with
/// rows for each sensor has no `attached`.
std::unique_ptr<Device> make_device(const Kind& kind, const Roots& roots,
                                    std::unique_ptr<Attached> attached = nullptr);

}  // namespace gpumeter::files

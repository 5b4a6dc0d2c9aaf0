#pragma once

#include "exporter/history/picture.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Reads the picture from the store. Copies the few families that it needs during the walk and works on the
/// copy, so that commits do not wait. Any thread.
Picture observe(const Store& store);

}  // namespace gpumeter

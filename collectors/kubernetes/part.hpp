#pragma once

#include "collectors/api/part.hpp"
#include "collectors/kubernetes/sources.hpp"

namespace gpumeter {
class SeriesList;
}

namespace gpumeter::kubelet {

/// `kubernetes` in the configuration.
extern const options::Section kSection;

/// Asks the node's kubelet for the names of pods, and publishes the state of the sources.
extern const PartEntry kPart;

/// The families gpumeter_names_source_*.
void add_series(SourceId source, const SourceFigures& figures, SeriesList& to);

}  // namespace gpumeter::kubelet

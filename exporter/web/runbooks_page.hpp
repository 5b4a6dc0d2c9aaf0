#pragma once

#include <string>
#include <string_view>

namespace gpumeter {

/// The page at `/runbooks`: docs/runbooks.md as HTML, so that the reasons on the live page have an address
/// that works without a network. A heading `## GpuLost` has the anchor `gpulost`.
std::string runbooks_page(std::string_view markdown);

}  // namespace gpumeter

#pragma once

#include <string>
#include <string_view>

namespace gpumeter {

/// The text with the characters replaced that HTML reads as markup, in elements and in quoted attributes.
std::string escaped_html(std::string_view text);

}  // namespace gpumeter

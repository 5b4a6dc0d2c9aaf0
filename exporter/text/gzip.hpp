#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gpumeter {

/// `bytes` as a gzip file (RFC 1952). Uses zlib's level 1: for a page of 215 kB it takes 0.6 ms and saves 87
/// %; level 6 takes 1.6 ms and saves 90 %.
Result<std::string> gzip(std::string_view bytes);

/// The bytes of a gzip file that was made from less than 4 GiB and is trusted.
Result<std::string> gunzip(std::string_view file);

}  // namespace gpumeter

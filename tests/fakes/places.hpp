#pragma once

#include <string>

namespace gpumeter::places {

/// Libraries and folders that the build knows. One object names them, so that all others are the same in
/// every clone, and a compiler's cache has them.
extern const char* const kFakeNvml;        ///< the library
extern const char* const kFakeBlasFolder;  ///< of libcublas and librocblas
extern const char* const kFakeDcgm;        ///< the library

/// A file of the folder `tests`.
std::string in_tests(const std::string& path);
/// A file of the captures of real cards, in the folder that $GPUMETER_CAPTURES names, or beside the project.
std::string in_captures(const std::string& path);

}  // namespace gpumeter::places

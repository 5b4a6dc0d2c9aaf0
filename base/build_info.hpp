#pragma once

#include <string>
#include <string_view>

/// The build, which --version and gpumeter_build_info show. CMake fills in build_info.cpp.in, so that a new
/// commit compiles nothing else again. Any thread.
namespace gpumeter::build {

extern const char kVersion[];
extern const char kRevision[];
extern const char kBranch[];
extern const char kCompiler[];

/// What --version prints: "PROGRAM, version 1.0.0 (revision: 0123456789ab)".
std::string version_text(std::string_view program);

}  // namespace gpumeter::build

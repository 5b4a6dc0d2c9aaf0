#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/import/sheet.hpp"

namespace gpumeter::import {

/// What a file alone does not say.
struct Context {
  std::string host;  ///< the name of this machine, as gethostname(2) gives it
};

/// Each parser accepts any bytes. It returns an Error "LINE: REASON" for a file that is cut, or that another
/// program wrote.
using Parse = Result<Sheet> (*)(std::string_view text, const Context& context);

struct Format {
  std::string_view name;  ///< of the command, and the suite
  std::string_view what;  ///< the program and its forms
  Parse parse;
};
std::span<const Format> formats() noexcept;
/// Returns nullptr if there is no such format.
const Format* find_format(std::string_view name) noexcept;

/// Parses a file. In addition to what the format refuses: a file without a result, or with more results than
/// the daemon keeps.
Result<Sheet> parse_file(const Format& format, std::string_view text, const Context& context);

Result<Sheet> parse_clpeak(std::string_view text, const Context& context);
Result<Sheet> parse_nvbandwidth(std::string_view text, const Context& context);
Result<Sheet> parse_dcgm_diag(std::string_view text, const Context& context);
Result<Sheet> parse_rocm_bandwidth(std::string_view text, const Context& context);
Result<Sheet> parse_transferbench(std::string_view text, const Context& context);
Result<Sheet> parse_deepbench(std::string_view text, const Context& context);
Result<Sheet> parse_ai_benchmark(std::string_view text, const Context& context);
Result<Sheet> parse_mlperf(std::string_view text, const Context& context);
Result<Sheet> parse_nccl_tests(std::string_view text, const Context& context);

}  // namespace gpumeter::import

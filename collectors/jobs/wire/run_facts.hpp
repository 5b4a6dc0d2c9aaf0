#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "collectors/api/series.hpp"
#include "collectors/jobs/wire/dogstatsd_line.hpp"

/// What a run_start may report about its run. Constant tables, any thread.
namespace gpumeter::jobs {

/// A tag of run_start and a label of ml_run_info.
enum class Fact : std::uint8_t {
  framework,  ///< any text, as the two below
  version,
  model,
  precision,          ///< of the matrix multiplications: a dtype, int4, or mixed
  sharding,           ///< how data-parallel processes split parameters: fsdp, hsdp, zero1, zero2, zero3
  data_parallel,      ///< replicas of the model; a number from 1 to 999999, as the two below
  tensor_parallel,    ///< processes that share each layer
  pipeline_parallel,  ///< stages into which the layers are split
};
inline constexpr std::size_t kFactCount = static_cast<std::size_t>(Fact::pipeline_parallel) + 1;

inline constexpr EnumNames<Fact, kFactCount> kFactNames = {{{Fact::framework, "framework"},
                                                            {Fact::version, "version"},
                                                            {Fact::model, "model"},
                                                            {Fact::precision, "precision"},
                                                            {Fact::sharding, "sharding"},
                                                            {Fact::data_parallel, "data_parallel"},
                                                            {Fact::tensor_parallel, "tensor_parallel"},
                                                            {Fact::pipeline_parallel, "pipeline_parallel"}}};
constexpr std::string_view to_string(Fact fact) noexcept { return kFactNames.of(fact); }

/// By Fact; empty: not reported.
using RunFacts = std::array<std::string, kFactCount>;

/// Returns whether the fact can have this value, which is not empty.
bool is_acceptable(Fact fact, std::string_view value) noexcept;

struct FactsRead {
  RunFacts facts;
  std::size_t refused = 0;  ///< tags whose value is outside the closed set
};
FactsRead read_facts(const Tags& tags);

/// Those that are reported.
std::vector<Label> labels_of(const RunFacts& facts);

}  // namespace gpumeter::jobs

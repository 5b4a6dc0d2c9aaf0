#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "programs/top/layout.hpp"
#include "programs/top/snapshot.hpp"

namespace gpumeter::top {

/// The order of the GPUs. Each name begins with the key that selects it.
enum class Sort : std::uint8_t { state, gpu, utilization, power, memory, temperature };
inline constexpr EnumNames<Sort, 6> kSortNames = {{{Sort::state, "state"},
                                                   {Sort::gpu, "gpu"},
                                                   {Sort::utilization, "utilization"},
                                                   {Sort::power, "power"},
                                                   {Sort::memory, "memory"},
                                                   {Sort::temperature, "temperature"}}};

/// Returns the GPUs in order: the worst state first, the lowest index first, or the highest value first;
/// reversed on request. GPUs without the value are the last in either case. Pure.
std::vector<const Gpu*> sorted(const std::vector<Gpu>& gpus, Sort sort, bool is_reversed);

/// One row per GPU. The column of models is omitted if all GPUs have the same model, except `with_model`.
Table gpu_table(const std::vector<const Gpu*>& gpus, const std::string& selected_uuid, bool with_model);

/// The state in a word: also "asleep" for a GPU that runtime power management has suspended.
std::string_view state_word(const Gpu& gpu);
Style style_of(State state);
/// True if all GPUs have the same model.
bool have_one_model(const std::vector<Gpu>& gpus);

/// One row per run. Pure.
Table job_table(const std::vector<Run>& runs);

/// All that is known of one GPU: why it is in its state and what to do, its values, who uses it. Pure.
Lines gpu_detail(const Snapshot& snapshot, const Gpu& gpu, int width, Charset charset);

/// A finding in a line or more: severity, sentence, time, action, alert.
Lines finding_lines(const Finding& finding, int width, Charset charset);

}  // namespace gpumeter::top

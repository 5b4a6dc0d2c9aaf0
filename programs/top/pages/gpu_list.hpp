#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "programs/top/layout/table.hpp"
#include "programs/top/model/snapshot.hpp"

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
Style style_of_margin(Number margin);

/// The causes that slow the GPU down now: "thermal,power"; "-" if there is none or nothing is known.
std::string throttle_text(const Gpu& gpu);

/// "slurm_job 4711"; the kind "other" is omitted.
std::string share_name(const Share& share);

/// The workload with the largest share: "slurm_job 4711 (alice) +1"; "-" without workloads.
std::string holder_text(const Gpu& gpu);

/// True if all GPUs have the same model.
bool have_one_model(const std::vector<Gpu>& gpus);

}  // namespace gpumeter::top

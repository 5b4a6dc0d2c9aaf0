#include "collectors/attribution/cgroup/slurm.hpp"

#include <algorithm>

#include "collectors/attribution/cgroup/unit_names.hpp"

namespace gpumeter::cgroup {
namespace {

// Crockford's base 32: no I, L, O, U. sluid2str() writes only these digits.
constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kSluid = 14;

bool is_sluid(std::string_view name) noexcept {
  return name.size() == kSluid && name.front() == 's' &&
         name.find_first_not_of(kDigits, 1) == std::string_view::npos;
}

std::string_view number_after(std::string_view prefix, std::string_view name) noexcept {
  const std::string_view number = between(name, prefix, "");
  return is_digits(number) ? number : std::string_view();
}

/// The job's own folder.
bool take_job(std::string_view name, SlurmFolder& folder) noexcept {
  folder.job = number_after("job_", name);
  if (is_sluid(name)) folder.sluid = name;
  return !folder.id().empty();
}

/// Reads the folders below the job's: step_N/user/task_N or step_N/slurm, and in v1 step_N/task_N.
void take_steps(Names names, SlurmFolder& folder) noexcept {
  folder.step = between(names.next(), "step_", "");
  if (folder.step.empty()) return;
  std::string_view name = names.next();
  folder.daemon = name == "slurm";
  if (name == "user") name = names.next();
  folder.task = between(name, "task_", "");
}

SlurmFolder folder_v1(Names names) noexcept {
  SlurmFolder folder;
  const std::string_view root = names.next();
  folder.node = between(root, "slurm_", "");
  folder.uid = number_after("uid_", names.next());
  const bool below_slurm = root == "slurm" || !folder.node.empty();
  if (!below_slurm || folder.uid.empty() || !take_job(names.next(), folder)) return {};
  take_steps(names, folder);
  return folder;
}

SlurmFolder folder_v2(Names names) noexcept {
  std::string_view name = names.next();
  if (!is_slice(name) || name == "user.slice" || user_of(name))
    return {};  // CgroupSlice= may set any other
                // slice
  while (is_slice(name)) name = names.next();
  SlurmFolder folder;
  folder.node = between(name, "", "_slurmstepd.scope");
  const bool below_slurm = name == "slurmstepd.scope" || !folder.node.empty();
  if (!below_slurm || !take_job(names.next(), folder)) return {};
  take_steps(names, folder);
  return folder;
}

}  // namespace

SlurmFolder slurm_folder(std::string_view path) noexcept {
  const SlurmFolder folder = folder_v1(Names(path));
  return folder.id().empty() ? folder_v2(Names(path)) : folder;
}

std::optional<Sluid> decode_sluid(std::string_view sluid) noexcept {
  if (!is_sluid(sluid) || kDigits.find(sluid[1]) >= 16) return std::nullopt;  // 13 digits have 65 bits
  std::uint64_t value = 0;
  for (const char c : sluid.substr(1)) value = value << 5 | kDigits.find(c);
  return Sluid{static_cast<std::uint16_t>(value >> 52),
               std::chrono::milliseconds(static_cast<std::int64_t>(value >> 10 & 0x3ff'ffff'ffff)),
               static_cast<std::uint16_t>(value & 0x3ff)};
}

}  // namespace gpumeter::cgroup

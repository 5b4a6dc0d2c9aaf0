#include "collectors/attribution/names/slurm/job_file.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"
#include "collectors/attribution/cgroup/text.hpp"

namespace gpumeter::slurm {
namespace {

/// Removes and returns the next line's name and value; an empty name: the line has no `=`.
std::pair<std::string_view, std::string_view> take_line(std::string_view& text) {
  std::string_view line = take_until(text, '\n');
  if (line.find('=') == std::string_view::npos) return {};
  const std::string_view name = take_until(line, '=');
  return {name, line};
}

bool is_number(std::string_view text) {
  constexpr std::size_t kLongest = 10;  // job numbers have 32 bits
  return !text.empty() && text.size() <= kLongest &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string number_of(std::string_view text) { return is_number(text) ? std::string(text) : std::string(); }

// NVIDIA's GPU-<uuid> and MIG-<uuid>, AMD's GPU-<16 hexadecimal digits>.
bool is_uuid(std::string_view item) { return item.starts_with("GPU-") || item.starts_with("MIG-"); }

void take_uuids(std::string_view list, Job& job) {
  while (!list.empty() && job.uuids.size() < kMostGpus) {
    const std::string_view item = trimmed(take_until(list, ','));
    if (!is_uuid(item)) continue;
    std::string uuid = cgroup::label_text(item);
    if (std::ranges::find(job.uuids, uuid) == job.uuids.end()) job.uuids.push_back(std::move(uuid));
  }
}

// "0,2" and "0-3".
void take_positions(std::string_view list, Job& job) {
  while (!list.empty()) {
    std::string_view item = trimmed(take_until(list, ','));
    const std::string_view first = take_until(item, '-');
    const auto from = parse_number<std::size_t>(first);
    const auto to = item.empty() ? from : parse_number<std::size_t>(item);
    if (!from || !to) continue;
    for (std::size_t at = *from; at <= *to && job.positions.size() < kMostGpus; ++at) {
      if (std::ranges::find(job.positions, at) == job.positions.end()) job.positions.push_back(at);
    }
  }
}

struct Lists {
  std::string_view job_gpus;  // positions
  std::vector<std::string_view> visible;
};

bool take_claim(std::string_view name, std::string_view value, Job& job) {
  if (name == "SLURM_JOB_NAME") job.name = cgroup::label_text(value);
  if (name == "SLURM_ARRAY_JOB_ID") job.array_job = number_of(value);
  if (name == "SLURM_ARRAY_TASK_ID") job.array_task = number_of(value);
  return name == "SLURM_JOB_NAME" || name.starts_with("SLURM_ARRAY_");
}

void take_fact(std::string_view name, std::string_view value, Job& job) {
  if (name == "SLURM_JOB_ID") job.id = number_of(value);
  if (name == "SLURM_JOB_SLUID" && cgroup::decode_sluid(value)) job.sluid = value;
  if (name == "SLURM_JOB_UID") job.uid = parse_number<std::uint32_t>(value);
  if (name == "SLURM_JOB_USER") job.user = cgroup::label_text(value);
  if (name == "SLURM_JOB_ACCOUNT") job.account = cgroup::label_text(value);
  if (name == "SLURM_JOB_PARTITION") job.partition = cgroup::label_text(value);
  if (name == "SLURM_JOB_QOS") job.qos = cgroup::label_text(value);
  if (name == "SLURM_JOB_START_TIME" && is_number(value)) {
    job.start = std::chrono::seconds(parse_number<std::uint32_t>(value).value_or(0));
  }
}

void take_list(std::string_view name, std::string_view value, Lists& lists) {
  if (name == "SLURM_JOB_GPUS") lists.job_gpus = value;
  const bool is_visible =
      name == "CUDA_VISIBLE_DEVICES" || name == "ROCR_VISIBLE_DEVICES" || name == "ZE_AFFINITY_MASK";
  if (is_visible) lists.visible.push_back(value);
}

}  // namespace

std::optional<Job> parse_job(std::string_view text) {
  Job job;
  Lists lists;
  text = text.substr(0, kMostBytes);
  while (!text.empty()) {
    const auto [name, value] = take_line(text);
    if (take_claim(name, value, job)) continue;
    take_fact(name, value, job);
    take_list(name, value, lists);
  }
  if (job.id.empty()) return std::nullopt;
  for (const std::string_view list : lists.visible) take_uuids(list, job);
  if (!job.uuids.empty()) return job;
  take_positions(lists.job_gpus, job);
  if (job.positions.empty() && !lists.visible.empty()) take_positions(lists.visible.front(), job);
  return job;
}

void add_claims(std::string_view text, Job& job) {
  text = text.substr(0, kMostBytes);
  while (!text.empty()) {
    const auto [name, value] = take_line(text);
    take_claim(name, value, job);
  }
}

std::vector<Label> labels_of(const Job& job) {
  std::vector<Label> labels;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) labels.push_back({name, value});
  };
  add("slurm_account", job.account);
  add("slurm_array_job", job.array_job);
  add("slurm_array_task", job.array_task);
  add("slurm_job", job.id);
  add("slurm_job_name", job.name);
  add("slurm_partition", job.partition);
  add("slurm_qos", job.qos);
  add("slurm_sluid", job.sluid);
  add("user", job.user);
  return labels;
}

}  // namespace gpumeter::slurm

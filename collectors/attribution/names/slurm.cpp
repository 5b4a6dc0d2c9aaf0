#include "collectors/attribution/names/slurm.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "collectors/attribution/cgroup/slurm.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

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
  return text.size() <= kLongest && cgroup::is_digits(text);
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
  if (name == "SLURM_JOB_SLUID" && cgroup::is_sluid(value)) job.sluid = value;
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

namespace {

/// Removes and returns the digits at the start.
std::string_view take_digits(std::string_view& text) {
  const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

// slurmd sorts by strnatcmp(): digits compare as numbers, so nvidia2 precedes nvidia10.
bool comes_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    if (cgroup::is_digits(a.substr(0, 1)) && cgroup::is_digits(b.substr(0, 1))) {
      const auto one = parse_number<std::size_t>(take_digits(a));
      const auto other = parse_number<std::size_t>(take_digits(b));
      if (one != other) return one < other;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.empty() && !b.empty();
}

/// Returns the value of NAME= in a line of words; configuration files ignore case.
std::string_view value_of(std::string_view line, std::string_view name) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  while (!line.empty()) {
    std::string_view word = take_until(line, ' ');
    word = trimmed(word);
    if (word.size() <= name.size() || word[name.size()] != '=') continue;
    if (std::ranges::equal(word.substr(0, name.size()), name, same)) return word.substr(name.size() + 1);
  }
  return {};
}

void add_range(std::string_view prefix, std::string_view item, std::string_view suffix,
               std::vector<std::string>& files) {
  std::string_view rest = item;
  const auto from = parse_number<std::size_t>(take_until(rest, '-'));
  const auto to = rest.empty() ? from : parse_number<std::size_t>(rest);
  if (!from || !to) return;
  for (std::size_t at = *from; at <= *to && files.size() < GpuList::kMost; ++at) {
    files.push_back(std::string(prefix) + std::to_string(at) + std::string(suffix));
  }
}

/// Expands one pair of brackets: /dev/nvidia[0,2-3]. Commas outside of brackets separate files.
std::vector<std::string> expanded(std::string_view list) {
  std::vector<std::string> files;
  while (!list.empty() && files.size() < GpuList::kMost) {
    const std::size_t open = list.find('[');
    if (list.find(',') < open || open == std::string_view::npos) {
      files.emplace_back(take_until(list, ','));
      continue;
    }
    const std::string_view prefix = list.substr(0, open);
    list.remove_prefix(open + 1);
    std::string_view items = take_until(list, ']');
    const std::string_view suffix = take_until(list, ',');
    while (!items.empty()) add_range(prefix, take_until(items, ','), suffix, files);
  }
  return files;
}

/// A device's own place in its list of links: the number of links is -1 there.
std::optional<std::size_t> own_place(std::string_view links) {
  for (std::size_t place = 0; !links.empty(); ++place) {
    if (take_until(links, ',') == "-1") return place;
  }
  return std::nullopt;
}

struct Entry {
  std::optional<std::size_t> place;  ///< by Links=
  std::string file;
};

std::vector<Entry> entries_of(std::string_view text) {
  std::vector<Entry> entries;
  while (!text.empty() && entries.size() < GpuList::kMost) {
    std::string_view line = take_until(text, '\n');
    line = trimmed(take_until(line, '#'));
    if (value_of(line, "Name") != "gpu") continue;
    const auto place = own_place(value_of(line, "Links"));
    for (std::string& file : expanded(value_of(line, "File"))) entries.push_back({place, std::move(file)});
  }
  return entries;
}

}  // namespace

GpuList GpuList::parse(std::string_view text) {
  std::vector<Entry> entries = entries_of(text);
  std::ranges::stable_sort(entries, comes_before, &Entry::file);
  const auto is_linked = [](const Entry& entry) { return entry.place.has_value(); };
  if (std::ranges::all_of(entries, is_linked)) std::ranges::stable_sort(entries, {}, &Entry::place);
  GpuList list;
  for (Entry& entry : entries) {
    if (list.files_.size() < kMost) list.files_.push_back(std::move(entry.file));
  }
  return list;
}

std::optional<workloads::DeviceSelector> GpuList::at(std::size_t position) const {
  using By = workloads::DeviceSelector::By;
  if (position >= files_.size()) return std::nullopt;
  const std::string_view file = files_[position];
  const auto after = [&](std::string_view prefix) {
    const std::string_view number = cgroup::between(file, prefix, "");
    return cgroup::is_digits(number) ? std::string(number) : "";
  };
  if (const std::string minor = after("/dev/nvidia"); !minor.empty()) return {{By::minor, minor, "nvidia"}};
  if (const std::string minor = after("/dev/dri/renderD"); !minor.empty()) return {{By::minor, minor, ""}};
  return std::nullopt;
}

namespace {

using workloads::DeviceSelector;
using workloads::NameKey;

constexpr std::size_t kMostListBytes = 65536;

// Written once by an administrator, in any folder.
std::string text_of(const std::string& path) {
  std::string text(kMostListBytes, '\0');
  const Descriptor file(path.empty() ? -1 : ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.number(), text.data(), text.size()) : 0;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::optional<Job> read_job(const gpumeter::Folder& folder, const std::string& name, std::int64_t& modified) {
  const auto file = folder.read_of(folder.owner(), name, kMostBytes);
  if (!file) return std::nullopt;
  modified = file->modified;
  std::optional<Job> job = parse_job(file->text);
  if (!job || job->id != name) return std::nullopt;
  if (const auto claims = folder.read_of(folder.owner(), name + ".name", kMostBytes)) {
    add_claims(claims->text, *job);
  }
  return job;
}

}  // namespace

Result<workloads::Names> Folder::read(std::chrono::seconds now) {
  assumes_order_ = false;
  const Result<gpumeter::Folder> folder = gpumeter::Folder::open_trusted(settings_.path);
  if (!folder) return folder.error();
  std::vector<std::string> files = folder->names(2 * kMostJobs);
  std::erase_if(files, [](const std::string& name) { return !cgroup::is_digits(name); });
  workloads::Names names;
  if (files.empty()) return names;
  const cgroup::JobGroups groups = cgroup::read_job_groups(settings_.sysfs);
  list_ = GpuList::parse(text_of(settings_.gpu_list));
  for (const std::string& name : files) {
    std::int64_t modified = 0;
    const std::optional<Job> job = read_job(*folder, name, modified);
    if (!job) continue;
    // Slurm 26.05 names the control group by the SLUID.
    const bool is_by_sluid = !job->sluid.empty() && groups.folders.contains(job->sluid);
    const bool has_group = is_by_sluid || groups.folders.contains(job->id);
    const auto age = now - std::chrono::seconds(modified);
    if (groups.has_slurm && !has_group && age > kWithoutGroup) continue;
    const auto since = job->start.value_or(std::chrono::seconds(modified));
    add(*job, since, is_by_sluid, names);
  }
  return names;
}

void Folder::add(const Job& job, std::chrono::seconds since, bool is_by_sluid, workloads::Names& names) {
  const std::vector<Label> labels = labels_of(job);
  names.labels[{NameKey::By::slurm_job, job.id}] = labels;
  if (!job.sluid.empty()) names.labels[{NameKey::By::slurm_sluid, job.sluid}] = labels;
  const workloads::WorkloadId id = {cgroup::Kind::slurm_job, is_by_sluid ? job.sluid : job.id};
  const auto give = [&](DeviceSelector device) {
    names.allocations.push_back({std::move(device), id, workloads::AllocationSource::slurm, since, labels});
  };
  for (const std::string& uuid : job.uuids) give({DeviceSelector::By::uuid, uuid, ""});
  for (const std::size_t position : job.positions) {
    if (list_.size() == 0) assumes_order_ = true;
    const DeviceSelector in_order = {DeviceSelector::By::position, std::to_string(position), ""};
    const auto listed = list_.size() == 0 ? in_order : list_.at(position);
    if (listed) give(*listed);
  }
}

}  // namespace gpumeter::slurm

#include "collectors/attribution/names/slurm/folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "collectors/attribution/names/slurm/job_file.hpp"
#include "collectors/attribution/names/slurm/job_groups.hpp"

namespace gpumeter::slurm {

/// A job that has not ended.
struct Folder::Found {
  Job job;
  std::chrono::seconds since{};
  bool is_by_sluid = false;  ///< its control group has the SLUID as its name: Slurm 26.05
};

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

bool is_job_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
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
  std::erase_if(files, [](const std::string& name) { return !is_job_number(name); });
  workloads::Names names;
  if (files.empty()) return names;
  const JobGroups groups = read_job_groups(settings_.sysfs);
  list_ = GpuList::parse(text_of(settings_.gpu_list));
  for (const std::string& name : files) {
    std::int64_t modified = 0;
    std::optional<Job> job = read_job(*folder, name, modified);
    if (!job) continue;
    const bool is_by_sluid = !job->sluid.empty() && groups.folders.contains(job->sluid);
    const bool has_group = is_by_sluid || groups.folders.contains(job->id);
    const auto age = now - std::chrono::seconds(modified);
    if (groups.has_slurm && !has_group && age > kWithoutGroup) continue;
    const auto since = job->start.value_or(std::chrono::seconds(modified));
    add({*std::move(job), since, is_by_sluid}, names);
  }
  return names;
}

void Folder::add(const Found& found, workloads::Names& names) {
  const Job& job = found.job;
  const std::vector<Label> labels = labels_of(job);
  names.labels[{NameKey::By::slurm_job, job.id}] = labels;
  if (!job.sluid.empty()) names.labels[{NameKey::By::slurm_sluid, job.sluid}] = labels;
  const workloads::WorkloadId id = {cgroup::Kind::slurm_job, found.is_by_sluid ? job.sluid : job.id};
  const auto give = [&](DeviceSelector device) {
    names.allocations.push_back(
        {std::move(device), id, workloads::AllocationSource::slurm, found.since, labels});
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

#include "programs/held/pass.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <utility>

#include "collectors/attribution/names/slurm/job_groups.hpp"
#include "programs/held/folder.hpp"

namespace gpumeter::held {
namespace {

bool is_named(const std::set<std::string>& names, const std::string& node) {
  return names.contains(node) || (names.contains("nvidia") && node.starts_with("nvidia")) ||
         (names.contains("dri") && node.starts_with("dri/"));
}

std::uint64_t inode_of(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

/// The GPUs whose nodes this process could open, and their paths. Another one's answer would be no filter's.
struct Nodes {
  std::vector<Gpu> gpus;
  std::vector<std::string> paths;
};

Nodes nodes_of(const Roots& roots) {
  Nodes nodes;
  for (Gpu& gpu : read_gpus(roots)) {
    std::string path = roots.dev + "/" + gpu.node;
    if (ask_here({&path, 1}).front() != Access::allowed) continue;
    nodes.gpus.push_back(std::move(gpu));
    nodes.paths.push_back(std::move(path));
  }
  return nodes;
}

class Pass {
 public:
  Pass(const Settings& settings, const Ask& ask, const RecordFolder& folder)
      : settings_(settings), ask_(ask), folder_(folder), nodes_(nodes_of(settings.roots)) {
    for (const Gpu& gpu : nodes_.gpus) {
      if (is_named(settings.managed, gpu.node)) named_.insert(gpu.pci_address);
    }
  }

  Outcome run(std::chrono::seconds now) {
    const RecordFolder::Content before = folder_.read();
    records_ = before.records;
    const slurm::JobGroups groups = slurm::read_job_groups(settings_.roots.sysfs);
    outcome_.jobs = groups.folders.size();
    remove_ended(groups);
    for (const auto& [job, group] : groups.folders) {
      const std::uint64_t inode = inode_of(group);
      Record& record = records_[job];
      if (record.group != inode) record = {.group = inode};
      const auto seen = before.records.find(job);
      const bool is_new = seen == before.records.end() || seen->second.group != inode;
      const auto age = is_new ? std::chrono::seconds(0) : now - before.written.at(job);
      const bool is_due = age >= settings_.settle;
      if (record.state == Record::State::pending && is_due) enter(job, group, record);
    }
    save(before);
    return std::move(outcome_);
  }

 private:
  void remove_ended(const slurm::JobGroups& groups) {
    std::erase_if(records_, [&](const auto& entry) {
      const bool has_ended = !groups.folders.contains(entry.first);
      if (has_ended) folder_.remove(entry.first);
      return has_ended;
    });
  }

  // Without a door, or in a frozen group, the job is looked at again in the next pass.
  void enter(const std::string& job, const std::string& group, Record& record) {
    const auto door = door_of(group);
    if (!door || is_frozen(*door) || nodes_.gpus.empty()) return;
    ++outcome_.entered;
    const auto answers = ask_(*door, nodes_.paths);
    record.state = answers ? Record::State::asked : Record::State::failed;
    if (!answers) return outcome_.failures.push_back("job " + job + ": " + answers.error().message());
    for (std::size_t at = 0; at < nodes_.gpus.size(); ++at) {
      const std::string& gpu = nodes_.gpus[at].pci_address;
      if ((*answers)[at] == Access::allowed) record.allowed.insert(gpu);
      if ((*answers)[at] == Access::denied) record.denied.insert(gpu);
    }
  }

  void note(const Result<Done>& written) {
    if (!written) outcome_.failures.push_back(written.error().message());
  }

  void save(const RecordFolder::Content& before) {
    std::set<std::string> known = before.managed;
    for (const auto& [job, record] : records_) known.insert(record.denied.begin(), record.denied.end());
    if (known != before.managed) note(folder_.write_managed(known));
    known.insert(named_.begin(), named_.end());
    judge(records_, known, named_);
    for (const auto& [job, record] : records_) {
      const auto old = before.records.find(job);
      if (old == before.records.end() || old->second != record) note(folder_.write(job, record));
    }
  }

  const Settings& settings_;
  const Ask& ask_;
  const RecordFolder& folder_;
  const Nodes nodes_;
  std::set<std::string> named_;  // PCI addresses
  Records records_;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> pass(const Settings& settings, const Ask& ask, std::chrono::seconds now) {
  const Result<RecordFolder> folder = RecordFolder::open(settings.folder);
  if (!folder) return folder.error();
  return Pass(settings, ask, *folder).run(now);
}

}  // namespace gpumeter::held

#include "programs/held/folder.hpp"

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/text.hpp"

namespace gpumeter::held {
namespace {

// As `gpumeter allocate` names its files: kind and workload.
constexpr std::string_view kPrefix = "slurm_job:";
constexpr std::string_view kManaged = ".managed";
// A job's file has two lines for each of at most 64 GPUs.
constexpr std::size_t kMostBytes = 16384;
// A machine runs fewer jobs.
constexpr std::size_t kMostFiles = 1024;

std::string file_of(const std::string& job) { return std::string(kPrefix) + job; }

}  // namespace

Result<RecordFolder> RecordFolder::open(const std::string& path) {
  Result<Folder> folder = Folder::open_trusted(path);
  if (!folder) return folder.error();
  if (!*folder) return Error(path + ": " + std::strerror(ENOENT));
  return RecordFolder(*std::move(folder));
}

RecordFolder::Content RecordFolder::read() const {
  Content content;
  for (const std::string& name : folder_.names(kMostFiles)) {
    if (!name.starts_with(kPrefix)) continue;
    const auto file = folder_.read_of(folder_.owner(), name, kMostBytes);
    if (!file) continue;
    const std::string job = name.substr(kPrefix.size());
    content.records[job] = parse_record(file->text);
    content.written[job] = std::chrono::seconds(file->modified);
  }
  const auto file = folder_.read_of(folder_.owner(), std::string(kManaged), kMostBytes);
  std::string_view lines = file ? std::string_view(file->text) : std::string_view();
  while (!lines.empty()) content.managed.emplace(take_until(lines, '\n'));
  return content;
}

// In memory, so that nothing outlives a power cut.
Result<Done> RecordFolder::replace(const std::string& name, const std::string& text) const {
  constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;
  return folder_.replace(name, text, kMode, Folder::Outlives::crash);
}

Result<Done> RecordFolder::write(const std::string& job, const Record& record) const {
  return replace(file_of(job), to_text(job, record));
}

Result<Done> RecordFolder::write_managed(const std::set<std::string>& gpus) const {
  std::string text;
  for (const std::string& gpu : gpus) text += gpu + "\n";
  return replace(std::string(kManaged), text);
}

void RecordFolder::remove(const std::string& job) const {
  [[maybe_unused]] const Result<Done> ignored = folder_.remove(file_of(job));
}

}  // namespace gpumeter::held

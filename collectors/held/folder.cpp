#include "collectors/held/folder.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "collectors/attribution/names/small_files.hpp"

namespace gpumeter::held {
namespace {

using workloads::TrustedFolder;

// As `gpumeter allocate` names its files: kind and workload.
constexpr std::string_view kPrefix = "slurm_job:";
constexpr std::string_view kManaged = ".managed";
constexpr std::string_view kNew = ".new";
// A job's file has two lines for each of at most 64 GPUs.
constexpr std::size_t kMostBytes = 16384;
// A machine runs fewer jobs.
constexpr std::size_t kMostFiles = 1024;

std::string file_of(const std::string& job) { return std::string(kPrefix) + job; }

}  // namespace

Result<RecordFolder> RecordFolder::open(const std::string& path) {
  const Result<TrustedFolder> folder = TrustedFolder::open(path);
  if (!folder) return folder.error();
  if (folder->number() < 0) return Error(path + ": " + std::strerror(ENOENT));
  return RecordFolder(path);
}

RecordFolder::Content RecordFolder::read() const {
  Content content;
  const Result<TrustedFolder> folder = TrustedFolder::open(path_);
  if (!folder) return content;
  for (const std::string& name : folder->names(kMostFiles)) {
    if (!name.starts_with(kPrefix)) continue;
    const auto file = folder->read(name, folder->owner(), kMostBytes);
    if (!file) continue;
    const std::string job = name.substr(kPrefix.size());
    content.records[job] = parse_record(file->text);
    content.written[job] = std::chrono::seconds(file->modified);
  }
  const auto file = folder->read(std::string(kManaged), folder->owner(), kMostBytes);
  std::string_view lines = file ? std::string_view(file->text) : std::string_view();
  while (!lines.empty()) content.managed.emplace(take_until(lines, '\n'));
  return content;
}

Result<Done> RecordFolder::replace(const std::string& name, const std::string& text) const {
  const auto failed = [&] { return Error(path_ + "/" + name + ": " + std::strerror(errno)); };
  const std::string fresh = path_ + "/" + std::string(kNew);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
  constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH;
  const Descriptor file(::open(fresh.c_str(), kFlags, kMode));
  if (!file || fchmod(file.number(), kMode) != 0) return failed();
  if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return failed();
  if (rename(fresh.c_str(), (path_ + "/" + name).c_str()) != 0) return failed();
  return Done();
}

Result<Done> RecordFolder::write(const std::string& job, const Record& record) const {
  return replace(file_of(job), to_text(job, record));
}

Result<Done> RecordFolder::write_managed(const std::set<std::string>& gpus) const {
  std::string text;
  for (const std::string& gpu : gpus) text += gpu + "\n";
  return replace(std::string(kManaged), text);
}

void RecordFolder::remove(const std::string& job) const { unlink((path_ + "/" + file_of(job)).c_str()); }

}  // namespace gpumeter::held

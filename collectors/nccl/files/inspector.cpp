#include "collectors/nccl/files/inspector.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::string_view kPrefix = "nccl_inspector_metrics_";
constexpr std::string_view kSuffix = ".prom";

std::string_view uuid_in(std::string_view name) {
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return name;
}

/// Only Inspector's own spelling of a UUID, so that a GPU has one file:
/// "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9".
bool is_page(std::string_view name) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (name.size() != kPrefix.size() + kForm.size() + kSuffix.size()) return false;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  return std::ranges::equal(uuid_in(name), kForm, [](char has, char wanted) {
    const bool is_digit = (has >= '0' && has <= '9') || (has >= 'a' && has <= 'f');
    return wanted == 'x' ? is_digit : has == wanted;
  });
}

}  // namespace

bool Inspector::look(const Owners& owners, Nanoseconds now) {
  for (auto& [name, known] : files_) known.is_present = false;
  const Result<UserFolder> folder = UserFolder::open(settings_.folder);
  say(settings_.folder, folder_said_, folder ? "" : folder.error().message());
  bool is_torn = false;
  if (folder) {
    for (const std::string& name : names_in(*folder, owners)) {
      is_torn = look_at(*folder, name, owners, now) == FileState::torn || is_torn;
    }
  }
  std::erase_if(files_, [](const auto& entry) { return !entry.second.is_present; });
  return is_torn;
}

// Files of this machine's GPUs first: any user may add files with other names.
std::vector<std::string> Inspector::names_in(const UserFolder& folder, const Owners& owners) {
  std::vector<std::string> names;
  std::vector<std::string> others;
  folder.for_each([&](const std::string& name) {
    if (!is_page(name)) return;
    std::vector<std::string>& list = owners.place_of(uuid_in(name)) ? names : others;
    if (list.size() < kMostFiles) list.push_back(name);
  });
  others.resize(std::min(others.size(), kMostFiles - names.size()));
  names.insert(names.end(), others.begin(), others.end());
  std::ranges::sort(names);
  return names;
}

FileState Inspector::look_at(const UserFolder& folder, const std::string& name, const Owners& owners,
                             Nanoseconds now) {
  Known& known = files_[name];
  known.is_present = true;
  known.error.clear();
  known.state = judge(folder, name, owners, now, known);
  if (known.state != FileState::read && known.state != FileState::torn) known.page.reset();
  if (known.page) known.error = known.page->complaint;
  if (known.page || known.state == FileState::invalid)
    say(settings_.folder + "/" + name, known.said, known.error);
  return known.state;
}

// The owner is asked for before the content is, so that a stranger's files cost nothing.
FileState Inspector::judge(const UserFolder& folder, const std::string& name, const Owners& owners,
                           Nanoseconds now, Known& known) const {
  const Result<FileStamp> stamp = folder.look(name);
  if (!stamp) return known.error = stamp.error().message(), FileState::invalid;
  const auto place = owners.place_of(uuid_in(name));
  if (!place) return FileState::unknown_gpu;
  const auto run = owners.run_of(stamp->owner, place->uuid);
  if (!run) return FileState::foreign;
  known.place = *place;
  known.run = *run;
  if (is_stale(*stamp, now)) return FileState::stale;
  if (known.page && *stamp == known.stamp) return FileState::read;
  return read(folder, name, *stamp, now, known);
}

bool Inspector::is_stale(const FileStamp& stamp, Nanoseconds now) const {
  return now - stamp.modified > settings_.interval * kKept;
}

// Inspector truncates the file and writes it line by line. A file that is being written keeps the values of
// the dump before it while those are not stale.
FileState Inspector::read(const UserFolder& folder, const std::string& name, const FileStamp& seen,
                          Nanoseconds now, Known& known) const {
  if (is_stale(known.stamp, now)) known.page.reset();
  Result<UserFolder::File> file = folder.read(name, kMostBytes);
  if (!file) return known.error = file.error().message(), FileState::invalid;
  const bool is_young = now - seen.modified < kYoung;
  if (is_young || !file->is_as(seen) || !file->text.ends_with('\n')) return FileState::torn;
  known.page = parse_inspector_page(file->text);
  known.stamp = file->stamp;
  return FileState::read;
}

void Inspector::say(const std::string& path, std::string& said, const std::string& complaint) const {
  if (std::exchange(said, complaint) != complaint && say_) say_(path, complaint);
}

void Inspector::write(SeriesList& out) const {
  for (const auto& [name, known] : files_) {
    if (known.page) write(known, out);
  }
}

void Inspector::write(const Known& known, SeriesList& out) {
  const Labels gpu = known.place.labels().with({{"run", known.run.run}, {"user", known.run.user}});
  out.add(catalog::ml_nccl_dump_timestamp, gpu, to_seconds(known.stamp.modified));
  for (const auto& [key, means] : known.page->means) {
    const Labels labels = gpu.with(
        {{"op", std::string(key.op)}, {"size", std::string(key.size)}, {"scope", std::string(key.scope)}});
    if (means.bandwidth) out.add(catalog::ml_nccl_bus_bandwidth, labels, *means.bandwidth);
    if (means.duration) out.add(catalog::ml_nccl_operation_duration, labels, *means.duration);
  }
  for (std::size_t kind = 0; kind < kOperationKinds.size(); ++kind) {
    const Labels labels = gpu.with({{"kind", std::string(kOperationKinds.at(kind))}});
    const auto& recorded = known.page->recorded.at(kind);
    const auto& lost = known.page->lost.at(kind);
    if (recorded) out.add(catalog::ml_nccl_recorded_operations, labels, *recorded);
    if (lost) out.add(catalog::ml_nccl_lost_operations, labels, *lost);
  }
}

void Inspector::count(std::map<FileState, std::size_t>& counts) const {
  for (const auto& [name, known] : files_) {
    const bool is_bad = known.state == FileState::read && !known.error.empty();
    ++counts[is_bad ? FileState::invalid : known.state];
  }
}

}  // namespace gpumeter::nccl

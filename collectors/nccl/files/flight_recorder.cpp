#include "collectors/nccl/files/flight_recorder.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::nccl {
namespace {

/// The rank in a name; nullopt: the name is not the prefix and a number as torch prints it.
std::optional<unsigned> rank_in(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  if (digits.size() > 1 && digits.front() == '0') return std::nullopt;
  return parse_number<unsigned>(digits);
}

// torch does not rename the file into place, so that its end shows whether it is complete: STOP of a pickle,
// or the bracket of a JSON document.
bool is_torn(std::string_view text) {
  const std::string_view end = trimmed(text);
  return text.empty() || (text.starts_with('{') ? !end.ends_with('}') : !text.ends_with('.'));
}

}  // namespace

bool FlightRecorder::look(const Owners& owners, Nanoseconds now) {
  for (auto& [path, known] : files_) known.is_present = false;
  for (const std::string& prefix : prefixes_) {
    const std::size_t slash = prefix.rfind('/');
    const std::string path = prefix.substr(0, std::max<std::size_t>(slash, 1));
    const std::string base = prefix.substr(slash + 1);
    const Result<UserFolder> folder = UserFolder::open(path);
    const std::string complaint = folder ? "" : folder.error().message();
    if (std::exchange(folders_said_[path], complaint) != complaint && say_) say_(path, complaint);
    if (!folder) continue;
    for (const std::string& name : names_in(*folder, path, base, owners)) {
      Known& known = files_[path + "/" + name];
      known.rank = rank_in(name, base).value_or(0);
      known.prefix = prefix;
      look_at(*folder, name, owners, now, known);
    }
  }
  std::erase_if(files_, [](const auto& entry) { return !entry.second.is_present; });
  drop_earlier();
  return std::ranges::any_of(files_, [](const auto& entry) { return entry.second.state == FileState::torn; });
}

std::vector<std::string> FlightRecorder::names_in(const UserFolder& folder, const std::string& path,
                                                  const std::string& base, const Owners& owners) const {
  std::map<std::uint32_t, std::string> users;               // empty: does not count
  std::map<std::string, std::vector<std::string>> of_user;  // the user "": files that do not count
  folder.for_each([&](const std::string& name) {
    if (!rank_in(name, base)) return;
    const auto known = files_.find(path + "/" + name);
    const bool was_read = known != files_.end() && known->second.state == FileState::read;
    std::string user = was_read ? known->second.run.user : "";
    if (const Result<FileStamp> stamp = folder.look(name); stamp && !was_read) {
      const auto [entry, is_new] = users.try_emplace(stamp->owner);
      if (is_new) entry->second = owners.run_of(stamp->owner, "").value_or(RunLabels{}).user;
      user = entry->second;
    }
    std::vector<std::string>& list = of_user[user];
    if (list.size() < kMostFiles) list.push_back(name);
  });
  const std::vector<std::string> others = std::exchange(of_user[""], {});
  std::vector<std::string> names;
  for (std::size_t turn = 0; turn < kMostFiles; ++turn) {
    for (const auto& [user, list] : of_user) {
      if (turn < list.size() && names.size() < kMostFiles) names.push_back(list[turn]);
    }
  }
  const std::size_t left = std::min(others.size(), kMostFiles - names.size());
  names.insert(names.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(left));
  std::ranges::sort(names);
  return names;
}

// A dump that was read stays as it is, whatever its owner does later.
void FlightRecorder::look_at(const UserFolder& folder, const std::string& name, const Owners& owners,
                             Nanoseconds now, Known& known) {
  known.is_present = true;
  const Result<FileStamp> stamp = folder.look(name);
  const bool is_old = stamp && now - stamp->modified > kKept;
  const bool is_same = stamp && !is_old && *stamp == known.stamp;
  if (is_same && known.state != FileState::torn && known.state != FileState::foreign) return;
  known.error.clear();
  if (!stamp) {
    known.error = stamp.error().message();
    known.state = FileState::invalid;
  } else if (is_old) {
    known.state = FileState::stale;
  } else if (const auto run = owners.run_of(stamp->owner, ""); !run) {
    known.state = FileState::foreign;
  } else {
    const bool is_fresh = now - stamp->modified < kFresh;
    known.run = {run->user, is_fresh ? run->run : ""};
    known.state = read(folder, name, *stamp, now, known);
  }
  if (known.state == FileState::read || known.state == FileState::invalid) {
    if (std::exchange(known.said, known.error) != known.error && say_) {
      say_(known.prefix + std::to_string(known.rank), known.error);
    }
  }
}

FileState FlightRecorder::read(const UserFolder& folder, const std::string& name, const FileStamp& seen,
                               Nanoseconds now, Known& known) const {
  const Result<UserFolder::File> file = folder.read(name, kMostBytes);
  if (!file) return known.error = file.error().message(), FileState::invalid;
  known.stamp = file->stamp;
  if (now - seen.modified < kYoung || !file->is_as(seen)) return FileState::torn;
  if (is_torn(file->text)) {
    if (now - seen.modified < kFresh) return FileState::torn;
    return known.error = "the dump is not complete", FileState::invalid;
  }
  Result<FlightDump> dump = parse_flight_dump(file->text);
  if (!dump) return known.error = dump.error().message(), FileState::invalid;
  known.dump = *std::move(dump);
  return FileState::read;
}

void FlightRecorder::drop_earlier() {
  std::map<std::pair<std::string, std::uint32_t>, Nanoseconds> latest;
  for (const auto& [path, known] : files_) {
    if (known.state != FileState::read) continue;
    Nanoseconds& at = latest[{known.prefix, known.stamp.owner}];
    at = std::max(at, known.stamp.modified);
  }
  for (auto& [path, known] : files_) {
    if (known.state != FileState::read) continue;
    if (latest[{known.prefix, known.stamp.owner}] - known.stamp.modified > kTogether)
      known.state = FileState::stale;
  }
}

void FlightRecorder::write(SeriesList& out) const {
  struct State {
    std::string_view name;
    std::optional<std::int64_t> FlightDump::Group::*member;
  };
  constexpr State kStates[] = {{"enqueued", &FlightDump::Group::enqueued},
                               {"started", &FlightDump::Group::started},
                               {"completed", &FlightDump::Group::completed}};
  for (const auto& [path, known] : files_) {
    if (known.state != FileState::read) continue;
    const Labels rank({{"run", known.run.run},
                       {"user", known.run.user},
                       {"prefix", known.prefix},
                       {"rank", std::to_string(known.rank)}});
    out.add(catalog::ml_flight_recorder_dump_timestamp, rank, to_seconds(known.stamp.modified));
    for (const FlightDump::Group& group : known.dump.groups) {
      const Labels labels = rank.with({{"group", group.name}, {"description", group.description}});
      for (const State& state : kStates) {
        const std::optional<std::int64_t>& sequence = group.*state.member;
        if (!sequence) continue;
        out.add(catalog::ml_flight_recorder_collective, labels.with({{"state", std::string(state.name)}}),
                static_cast<double>(*sequence));
      }
    }
  }
}

void FlightRecorder::count(std::map<FileState, std::size_t>& counts) const {
  for (const auto& [path, known] : files_) ++counts[known.state];
}

}  // namespace gpumeter::nccl

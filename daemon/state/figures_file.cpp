#include "daemon/state/figures_file.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/small_file.hpp"
#include "base/worker.hpp"
#include "daemon/state/durable_file.hpp"

namespace gpumeter {
namespace {

// All quotas full (40000 series of jobs, 1024 workloads, 4096 ended ones) need less than half of it.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;

std::string first_line_of(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const SmallFile file = read_small_file(path, kMost);
  return file.text.substr(0, file.text.find('\n'));
}

}  // namespace

FiguresFile::FiguresFile(FiguresFolders folders, const Clock& clock, Log& log, KeptFigures figures,
                         MachineFiles machine)
    : folders_(std::move(folders)),
      clock_(clock),
      log_(log),
      figures_(std::move(figures)),
      machine_(std::move(machine)) {}

void FiguresFile::read() {
  machine_id_ = machine_id_in(machine_.machine_id);
  boot_id_ = first_line_of(machine_.boot_id);
  if (!figures_.restore) return;
  std::optional<SavedState> copy = read_copy();
  found_ = read_file(copy.has_value());
  found_path_ = path();
  const bool is_newer = copy && (!found_ || !is_of_this_boot(*found_) || copy->saved_at > found_->saved_at);
  if (is_newer) {
    found_ = std::move(copy);
    found_path_ = copy_path();
  }
  if (found_) found_->is_of_this_boot = is_of_this_boot(*found_);
}

std::optional<SavedState> FiguresFile::read_file(bool has_copy) {
  std::error_code error;
  if (!std::filesystem::exists(path(), error) && !error) return std::nullopt;
  const auto damaged = [&](const std::string& why) {
    if (!has_copy) reject(path(), why);
    return std::nullopt;
  };
  const Result<std::string> text = read_state_file(path(), kMostBytes);
  if (!text) return damaged(text.error().message());
  Result<SavedState> state = decode(*text);
  if (!state) return damaged(path() + ": " + state.error().message());
  if (!is_foreign(*state)) return *std::move(state);
  log_.warn("the figures in the state folder belong to another machine; counters start from 0",
            {{"path", path()}});
  return std::nullopt;
}

// A copy of another boot is on a disk: its folder is the state folder, or not in memory.
std::optional<SavedState> FiguresFile::read_copy() {
  std::error_code ignored;
  if (!std::filesystem::exists(copy_path(), ignored)) return std::nullopt;
  const Result<std::string> text = read_state_file(copy_path(), kMostBytes);
  Result<SavedState> state = text ? decode(*text) : Result<SavedState>(text.error());
  if (!state) {
    log_.warn("the copy of the figures is damaged; the figures of the state folder are continued",
              {{"path", copy_path()}, {"error", state.error().message()}});
    return std::nullopt;
  }
  if (is_foreign(*state) || !is_of_this_boot(*state)) return std::nullopt;
  return *std::move(state);
}

bool FiguresFile::is_foreign(const SavedState& state) const {
  return !state.machine_id.empty() && !machine_id_.empty() && state.machine_id != machine_id_;
}

bool FiguresFile::is_of_this_boot(const SavedState& state) const {
  return !boot_id_.empty() && state.boot_id == boot_id_;
}

Result<Done> FiguresFile::restore() {
  if (!found_) return Done{};
  const std::optional<SavedState> found = std::exchange(found_, std::nullopt);
  return figures_.restore(*found);
}

void FiguresFile::report(const Result<Done>& restored) {
  if (!restored) reject(found_path_, found_path_ + ": " + restored.error().message());
}

void FiguresFile::reject(const std::string& path, const std::string& why) {
  set_aside(path);
  log_.error(
      "the figures of the last run are lost: their file is damaged; it was renamed to figures.state.bad, "
      "counters start from 0",
      {{"error", why}});
}

Nanoseconds FiguresFile::save_if_due(bool was_served) {
  if (!figures_.collect) return Worker::kForever;
  const Nanoseconds now = clock_.monotonic();
  if (!next_) {
    next_ = now + kEvery;
    next_copy_ = now + kCopyEvery;
  }
  if (was_served) next_copy_ = std::min(next_copy_, earliest_copy_);
  if (now >= *next_) {
    save();
    next_ = clock_.monotonic() + kEvery;
    next_copy_ = clock_.monotonic() + kCopyEvery;
  } else if (now >= next_copy_) {
    copy();
  }
  return std::max(std::min(*next_, next_copy_) - clock_.monotonic(), Nanoseconds{0});
}

SavedState FiguresFile::now() const { return {machine_id_, boot_id_, clock_.realtime(), figures_.collect()}; }

void FiguresFile::save_last() {
  if (!figures_.collect || !save()) return;
  const Result<Folder> folder = Folder::open(copy_folder());
  if (folder) {
    [[maybe_unused]] const Result<Done> ignored = folder->remove(copy_name());
  }
}

// Logs the first of several failures.
bool FiguresFile::save() {
  const SavedState state = now();
  const Result<Done> saved = replace_state_file(folders_.state, kName, encode(state));
  if (!saved && !std::exchange(has_failed_, true)) {
    log_.warn("figures cannot be saved; the daemon retries every 10 s", {{"error", saved.error().message()}});
  }
  if (saved && std::exchange(has_failed_, false)) log_.info("figures are saved again", {{"path", path()}});
  return static_cast<bool>(saved);
}

void FiguresFile::copy() {
  const Nanoseconds begun = clock_.monotonic();
  const SavedState state = now();
  std::size_t hash = 0;
  for (const auto& [name, text] : state.sections) hash = 31 * hash + std::hash<std::string>()(text);
  if (copied_ != hash && write_copy(state)) copied_ = hash;
  const Nanoseconds ended = clock_.monotonic();
  const Nanoseconds rest = kCopyShare * (ended - begun);
  earliest_copy_ = ended + std::max(rest, kBetweenCopies);
  next_copy_ = ended + std::max(rest, kCopyEvery);
}

// Logs the first of several failures.
bool FiguresFile::write_copy(const SavedState& state) {
  const Result<Done> written =
      replace_state_file(copy_folder(), copy_name(), encode(state), Folder::Outlives::crash);
  if (!written && !std::exchange(has_copy_failed_, true)) {
    log_.warn("the copy of the figures cannot be written; a crash loses up to 10 s of them",
              {{"error", written.error().message()}});
  }
  if (written && std::exchange(has_copy_failed_, false)) {
    log_.info("the copy of the figures is written again", {{"path", copy_path()}});
  }
  return static_cast<bool>(written);
}

}  // namespace gpumeter

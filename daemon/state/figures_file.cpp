#include "daemon/state/figures_file.hpp"

#include <time.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/proc.hpp"
#include "base/records.hpp"
#include "base/worker.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kMagic = "gpumeter-state";
constexpr int kVersion = 1;
constexpr std::string_view kSection = "section";
constexpr std::string_view kEnd = "end";

/// Removes the last line if it is the right checksum of the others.
bool take_checksum(std::string_view& text) {
  if (!text.ends_with('\n')) return false;
  const std::size_t before = text.find_last_of('\n', text.size() - 2);
  if (before == std::string_view::npos || text.size() < 2) return false;
  const std::string_view last = text.substr(before + 1);
  text = text.substr(0, before + 1);
  return last == std::string(kEnd) + '\t' + checksum_of(text) + '\n';
}

/// Returns the length of the first `lines` lines; npos if there are fewer.
std::size_t length_of(std::string_view text, std::uint64_t lines) {
  std::size_t length = 0;
  for (; lines > 0; --lines) {
    const std::size_t end = text.find('\n', length);
    if (end == std::string_view::npos) return end;
    length = end + 1;
  }
  return length;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(length);
  return line;
}

bool take_header(std::string_view& text, SavedState& state) {
  if (text.empty()) return false;
  RecordReader header(take_line(text));
  if (!header.next() || header.kind() != kMagic || header.take<int>() != kVersion) return false;
  header(state.machine_id, state.boot_id, state.saved_at);
  return !header.failed() && !header.has_field();
}

bool take_section(std::string_view& text, StateSections& sections) {
  RecordReader head(take_line(text));
  if (!head.next() || head.kind() != kSection) return false;
  auto name = head.take<std::string>();
  const auto lines = head.take<std::uint64_t>();
  const std::size_t length = length_of(text, lines);
  if (head.failed() || head.has_field() || length == std::string_view::npos) return false;
  const bool is_new = sections.emplace(std::move(name), text.substr(0, length)).second;
  text.remove_prefix(length);
  return is_new;
}

// All quotas full (40000 series of jobs, 1024 workloads, 4096 ended ones) need less than half of it.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;

std::string first_line_of(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const SmallFile file = read_small_file(path, kMost);
  return file.text.substr(0, file.text.find('\n'));
}

/// Of this thread.
Nanoseconds processor_time() noexcept {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

}  // namespace

Result<std::string> read_state_file(const std::string& path, std::size_t most) {
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  return folder->read(at.name, most);
}

Result<Done> replace_state_file(const std::string& folder, const std::string& name, const std::string& text,
                                Folder::Outlives event) {
  constexpr mode_t kOwnOnly = 0600;
  const Result<Folder> opened = Folder::make(folder, kStateFolderMode);
  if (!opened) return opened.error();
  return opened->replace(name, text, kOwnOnly, event);
}

void set_aside(const std::string& path) {
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (folder) {
    [[maybe_unused]] const Result<Done> ignored = folder->rename(at.name, at.name + ".bad");
  }
}

std::string machine_id_in(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const SmallFile file = read_small_file(path, kMost);  // root's, and a link on some systems
  const std::string id = file.error == 0 && file.is_whole ? file.text.substr(0, file.text.find('\n')) : "";
  constexpr std::size_t kDigits = 32;
  return id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : "";
}

std::string checksum_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr int kBits = 32;
  const uLong sum = crc32_z(crc32_z(0, nullptr, 0), reinterpret_cast<const Bytef*>(text.data()), text.size());
  std::string digits;
  for (int shift = kBits - 4; shift >= 0; shift -= 4) digits += kDigits[(sum >> shift) & 15U];
  return digits;
}

const std::string& SavedState::section(const std::string& name) const {
  static const std::string kNone;
  const auto found = sections.find(name);
  return found == sections.end() ? kNone : found->second;
}

std::string encode(const SavedState& state) {
  RecordWriter header;
  header.begin(kMagic)(kVersion, state.machine_id, state.boot_id, state.saved_at);
  std::string text = header.take();
  for (const auto& [name, lines] : state.sections) {
    RecordWriter head;
    head.begin(kSection)(name, std::ranges::count(lines, '\n'));
    text += head.take() + lines;
  }
  return text + std::string(kEnd) + '\t' + checksum_of(text) + '\n';
}

Result<SavedState> decode(std::string_view text) {
  if (!take_checksum(text)) return Error("the file is cut or damaged: its checksum does not match");
  SavedState state;
  if (!take_header(text, state)) return Error("the file is not of this version of gpumeter");
  while (!text.empty()) {
    if (!take_section(text, state.sections)) return Error("the file has a malformed section");
  }
  return state;
}

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

bool FiguresFile::save() {
  return write(folders_.state, kName, now(), Folder::Outlives::power_cut, has_failed_,
               {"figures cannot be saved; the daemon retries every 10 s", "figures are saved again"});
}

/// Logs the first of several failures, and the end of them.
bool FiguresFile::write(const std::string& folder, const char* name, const SavedState& state,
                        Folder::Outlives event, bool& has_failed, const Notices& notices) {
  const Result<Done> written = replace_state_file(folder, name, encode(state), event);
  if (!written && !std::exchange(has_failed, true)) {
    log_.warn(notices.failed, {{"error", written.error().message()}});
  }
  if (written && std::exchange(has_failed, false)) log_.info(notices.works, {{"path", folder + "/" + name}});
  return static_cast<bool>(written);
}

// Only processor time counts: on a busy machine, a copy spends most of its time waiting.
void FiguresFile::copy() {
  const Nanoseconds begun = clock_.monotonic(), begun_processor = processor_time();
  const SavedState state = now();
  std::size_t hash = 0;
  for (const auto& [name, text] : state.sections) hash = 31 * hash + std::hash<std::string>()(text);
  if (copied_ != hash && write(copy_folder(), copy_name(), state, Folder::Outlives::crash, has_copy_failed_,
                               {"the copy of the figures cannot be written; a crash loses up to 10 s of them",
                                "the copy of the figures is written again"})) {
    copied_ = hash;
  }
  const Nanoseconds ended = clock_.monotonic();
  const Nanoseconds rest = kCopyShare * std::min(ended - begun, processor_time() - begun_processor);
  earliest_copy_ = ended + std::max(rest, kBetweenCopies);
  next_copy_ = ended + std::max(rest, kCopyEvery);
}

}  // namespace gpumeter

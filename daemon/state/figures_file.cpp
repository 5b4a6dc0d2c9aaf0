#include "daemon/state/figures_file.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/worker.hpp"
#include "daemon/state/durable_file.hpp"

namespace gpumeter {
namespace {

// All quotas full (40000 series of jobs, 1024 workloads, 4096 ended ones) need less than half of it.
constexpr std::size_t kMostBytes = std::size_t{32} << 20;

std::string first_line_of(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const Result<std::string> text = read_state_file(path, kMost);
  return text ? text->substr(0, text->find('\n')) : "";
}

}  // namespace

FiguresFile::FiguresFile(std::string folder, const Clock& clock, Log& log, KeptFigures figures,
                         MachineFiles machine)
    : folder_(std::move(folder)),
      clock_(clock),
      log_(log),
      figures_(std::move(figures)),
      machine_(std::move(machine)) {}

void FiguresFile::read() {
  machine_id_ = machine_id_in(machine_.machine_id);
  boot_id_ = first_line_of(machine_.boot_id);
  std::error_code error;
  if (!figures_.restore || (!std::filesystem::exists(path(), error) && !error)) return;
  const Result<std::string> text = read_state_file(path(), kMostBytes);
  if (!text) return reject(text.error().message());
  Result<SavedState> state = decode(*text);
  if (!state) return reject(path() + ": " + state.error().message());
  const bool is_foreign =
      !state->machine_id.empty() && !machine_id_.empty() && state->machine_id != machine_id_;
  if (is_foreign) {
    return log_.warn("the figures in the state folder belong to another machine; counters start from 0",
                     {{"path", path()}});
  }
  state->is_of_this_boot = !boot_id_.empty() && state->boot_id == boot_id_;
  found_ = *std::move(state);
}

Result<Done> FiguresFile::restore() {
  if (!found_) return Done{};
  const std::optional<SavedState> found = std::exchange(found_, std::nullopt);
  return figures_.restore(*found);
}

void FiguresFile::report(const Result<Done>& restored) {
  if (!restored) reject(path() + ": " + restored.error().message());
}

void FiguresFile::reject(const std::string& why) {
  set_aside(path());
  log_.error(
      "the figures of the last run are lost: their file is damaged; it was renamed to figures.state.bad, "
      "counters start from 0",
      {{"error", why}});
}

Nanoseconds FiguresFile::save_if_due() {
  if (!figures_.collect) return Worker::kForever;
  const Nanoseconds now = clock_.monotonic();
  if (!next_) next_ = now + kEvery;
  if (now >= *next_) {
    save();
    next_ = clock_.monotonic() + kEvery;
  }
  return *next_ - clock_.monotonic();
}

void FiguresFile::save() {
  if (!figures_.collect) return;
  SavedState state{machine_id_, boot_id_, clock_.realtime(), figures_.collect()};
  const Result<Done> saved = replace_state_file(folder_, kName, encode(state));
  if (!saved && !std::exchange(has_failed_, true)) {
    log_.warn("figures cannot be saved; the daemon retries every 10 s", {{"error", saved.error().message()}});
  }
  if (saved) has_failed_ = false;
}

}  // namespace gpumeter

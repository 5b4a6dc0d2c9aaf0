#include "collectors/sources/fdinfo/scanner.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::fdinfo {
namespace {

constexpr Nanoseconds kHangs = std::chrono::seconds(2);

// A scan asks for at most this many looks, since each costs some memory even if the budget is spent.
constexpr std::size_t kMostLooks = 4096;

constexpr Nanoseconds kNever = Nanoseconds::max();

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

}  // namespace

Scanner::Scanner(Sources sources)
    : sources_(std::move(sources)),
      clock_(*sources_.clock),
      looks_("drm-fdinfo", kHangs, clock_, sources_.hanging, sources_.procfs) {}

Scanner::Result Scanner::scan(const std::vector<std::string>& devices, Nanoseconds every) {
  const Nanoseconds begun = clock_.monotonic();
  const Nanoseconds begun_boot = clock_.boottime();
  if (last_scan_ && begun - *last_scan_ > 3 * std::max(every, kHangs)) forget();
  Result result;
  keep_only(listed());
  for (auto& [pid, holder] : holders_) holder.is_fresh = false;
  const LookOrder order{sources_.procfs, sources_.sysfs, devices, sources_.clock, begun + kBudget};
  auto answers = looks_.ask<Look>(due(begun), [order, look = sources_.look](const std::string& pid) {
    return look(order, parse_number<int>(pid).value_or(0));
  });
  for (auto& [pid, look] : answers.values) {
    take(parse_number<int>(pid).value_or(0), std::move(look), every, result);
  }
  for (const std::string& pid : answers.silent) take_silent(parse_number<int>(pid).value_or(0), begun);
  settle(devices, result);
  last_scan_ = begun;
  last_scan_boot_ = begun_boot;
  result.duration = clock_.monotonic() - begun;
  return result;
}

void Scanner::forget() {
  known_.clear();
  holders_.clear();
  for (auto& [device, account] : accounts_) account.interrupt();
  is_whole_ = false;
  last_scan_.reset();
  last_scan_boot_.reset();
}

// In ascending order.
std::vector<int> Scanner::listed() const {
  std::vector<int> pids;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(sources_.procfs.c_str()));
  if (!folder) return pids;
  while (const dirent* const entry = ::readdir(folder.get())) {
    const auto pid = parse_number<int>(std::string_view(entry->d_name));
    if (pid && *pid > 0 && *pid != sources_.own_pid) pids.push_back(*pid);
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

void Scanner::keep_only(const std::vector<int>& pids) {
  const auto has_ended = [&](const auto& entry) {
    return !std::binary_search(pids.begin(), pids.end(), entry.first);
  };
  std::erase_if(known_, has_ended);
  std::erase_if(holders_, has_ended);
  for (const int pid : pids) {
    if (known_.size() < kMostProcesses) known_.try_emplace(pid);
  }
  unlisted_ = pids.size() - known_.size();
}

// Holders first, by the age of what is known of them; then the others, those first that wait longest.
std::vector<std::string> Scanner::due(Nanoseconds now) const {
  struct Due {
    bool is_holder;
    Nanoseconds since;
    int pid;
  };
  std::vector<Due> all;
  for (const auto& [pid, known] : known_) {
    const auto holder = holders_.find(pid);
    if (holder != holders_.end()) {
      all.push_back({true, holder->second.at, pid});
    } else if (known.next_look <= now) {
      all.push_back({false, known.next_look, pid});
    }
  }
  std::sort(all.begin(), all.end(), [](const Due& one, const Due& other) {
    return std::tuple(!one.is_holder, one.since, one.pid) <
           std::tuple(!other.is_holder, other.since, other.pid);
  });
  all.resize(std::min(all.size(), kMostLooks));
  std::vector<std::string> pids;
  pids.reserve(all.size());
  for (const Due& each : all) pids.push_back(std::to_string(each.pid));
  return pids;
}

void Scanner::take(int pid, Look look, Nanoseconds every, Result& result) {
  if (look.outcome == LookOutcome::skipped) return;
  Known& known = known_[pid];
  if (!known.is_seen || known.start_ticks != look.start_ticks) known = {look.start_ticks, look.at, {}, true};
  known.is_inaccessible = look.outcome == LookOutcome::denied || look.is_cut;
  known.next_look =
      look.at + std::clamp((look.at - known.first_seen) / 2, every, std::max(every, kLookAgain));
  if (look.outcome == LookOutcome::kernel) known.next_look = kNever;
  result.malformed += look.malformed;
  if (look.clients.empty()) {
    holders_.erase(pid);
    return;
  }
  Holder& holder = holders_[pid];
  const bool is_new = started_since_last_scan(look.start_ticks);
  holder = {look.start_ticks, look.at, true, is_new, std::move(look.clients)};
}

// What was known of it remains. It is asked again after its call has returned.
void Scanner::take_silent(int pid, Nanoseconds now) {
  Known& known = known_[pid];
  known.is_seen = true;
  known.is_inaccessible = true;
  known.next_look = now + kLookAgain;
}

bool Scanner::started_since_last_scan(std::uint64_t start_ticks) const {
  static const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return last_scan_boot_ &&
         static_cast<double>(start_ticks) / ticks_per_second > to_seconds(*last_scan_boot_);
}

void Scanner::settle(const std::vector<std::string>& devices, Result& result) {
  const auto is_seen = [](const auto& entry) { return entry.second.is_seen; };
  is_whole_ = !known_.empty() && (is_whole_ || std::all_of(known_.begin(), known_.end(), is_seen));
  result.is_whole = is_whole_;
  result.inaccessible =
      static_cast<unsigned>(std::count_if(known_.begin(), known_.end(),
                                          [](const auto& entry) { return entry.second.is_inaccessible; }) +
                            static_cast<std::ptrdiff_t>(unlisted_));
  if (!is_whole_) return;
  const bool has_read_all =
      std::all_of(holders_.begin(), holders_.end(), [](const auto& each) { return each.second.is_fresh; });
  const Nanoseconds now = clock_.monotonic();
  for (auto& [device, account] : accounts_) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) account.interrupt();
  }
  for (const std::string& device : devices) {
    DeviceAccount& account = accounts_[device];
    account.take(device, holders_, now, has_read_all);
    result.uses.emplace(device, std::make_shared<const DrmUse>(account.use(result.inaccessible)));
  }
}

}  // namespace gpumeter::fdinfo

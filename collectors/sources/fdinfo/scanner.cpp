#include "collectors/sources/fdinfo/scanner.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <tuple>
#include <utility>

#include "base/descriptor.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::fdinfo {
namespace {

// Documentation/admin-guide/devices.txt and include/drm/drm_accel.h (ACCEL_MAJOR).
constexpr unsigned kDrmMajor = 226;
constexpr unsigned kAccelMajor = 261;

constexpr std::uint64_t kKernelThread = 0x00200000;  // include/linux/sched.h, PF_KTHREAD
constexpr int kFlagsField = 9;                       // proc(5)

// amdgpu and xe print 2 to 4 KiB.
constexpr std::size_t kMostText = 16'384;
constexpr std::size_t kMostClients = 1024;  // of one process

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

/// A device node: its number, or in a copy of /proc its path.
struct Node {
  unsigned major = 0;
  unsigned minor = 0;
  std::string path;

  auto operator<=>(const Node&) const = default;
};

/// A copy of /proc has plain links. Their targets are missing or belong to another machine.
std::optional<Node> node_of_link(int folder, const char* name) {
  std::array<char, 64> target{};
  const ssize_t size = ::readlinkat(folder, name, target.data(), target.size());
  const std::string_view path(target.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const bool is_drm = path.starts_with("/dev/dri/") || path.starts_with("/dev/accel/");
  return is_drm ? std::optional(Node{0, 0, std::string(path)}) : std::nullopt;
}

// AT_STATX_DONT_SYNC: descriptors on a network file system whose server is gone would hang.
std::optional<Node> drm_node(int folder, const char* name) {
  struct statx facts {};
  constexpr int kFlags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
  if (::statx(folder, name, kFlags, STATX_TYPE, &facts) != 0) {
    return errno == ENOENT ? node_of_link(folder, name) : std::nullopt;
  }
  const bool is_drm =
      S_ISCHR(facts.stx_mode) && (facts.stx_rdev_major == kDrmMajor || facts.stx_rdev_major == kAccelMajor);
  return is_drm ? std::optional(Node{facts.stx_rdev_major, facts.stx_rdev_minor, {}}) : std::nullopt;
}

/// The name of the device behind a node: its PCI address, or the name of a platform device. Empty if sysfs
/// does not have the node.
std::string device_of(const std::string& sysfs, const Node& node) {
  if (node.path.empty()) {
    return sysfs::link_name(sysfs + "/dev/char/" + std::to_string(node.major) + ":" +
                            std::to_string(node.minor) + "/device");
  }
  const std::string name = node.path.substr(node.path.rfind('/') + 1);
  const std::string_view subsystem = node.path.starts_with("/dev/accel/") ? "accel" : "drm";
  return sysfs::link_name(sysfs + "/class/" + std::string(subsystem) + "/" + name + "/device");
}

/// errno is 0 if the file was only empty.
std::string read_whole(const std::string& path) {
  errno = 0;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(file ? kMostText : 0, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.number(), text.data() + size, text.size() - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

/// One look at one process.
class Looker {
 public:
  Looker(const LookOrder& order, int pid)
      : order_(order), pid_(pid), folder_(order.procfs + "/" + std::to_string(pid)) {}

  Look look() {
    result_.outcome = identify();
    if (result_.outcome == LookOutcome::ok) result_.outcome = walk();
    result_.at = order_.clock->monotonic();
    return std::move(result_);
  }

 private:
  LookOutcome identify() {
    const std::string stat = read_whole(folder_ + "/stat");
    if (stat.empty()) return errno == EACCES || errno == EPERM ? LookOutcome::denied : LookOutcome::ended;
    const std::optional<std::uint64_t> start = proc::start_ticks(stat);
    if (!start || !proc::is_alive(stat)) return LookOutcome::ended;
    result_.start_ticks = *start;
    const auto flags = parse_number<std::uint64_t>(proc::stat_field(stat, kFlagsField));
    return (flags.value_or(0) & kKernelThread) != 0 ? LookOutcome::kernel : LookOutcome::ok;
  }

  LookOutcome walk() {
    const Folder fds(::opendir((folder_ + "/fd").c_str()));
    if (!fds) return errno == EACCES || errno == EPERM ? LookOutcome::denied : LookOutcome::ended;
    constexpr unsigned kBetweenLooksAtTheClock = 1024;
    for (unsigned count = 1; const dirent* const entry = ::readdir(fds.get()); ++count) {
      const auto fd = parse_number<int>(std::string_view(entry->d_name));
      if (!fd) continue;
      if (const auto node = drm_node(::dirfd(fds.get()), entry->d_name)) take(*fd, *node);
      if (count % kBetweenLooksAtTheClock == 0 && order_.clock->monotonic() > order_.until) {
        result_.is_cut = ::readdir(fds.get()) != nullptr;
        break;
      }
    }
    return LookOutcome::ok;
  }

  void take(int fd, const Node& node) {
    result_.holds_drm = true;
    auto [device, is_new] = devices_.try_emplace(node);
    if (is_new) device->second = device_of(order_.sysfs, node);
    const bool is_known = !device->second.empty();
    if (is_known && !is_asked(device->second)) return;
    if (result_.clients.size() >= kMostClients) {
      result_.is_cut = true;
      return;
    }
    const std::string text = read_whole(folder_ + "/fdinfo/" + std::to_string(fd));
    const Text parsed = parse(text);
    result_.malformed += parsed.malformed;
    Client client{parsed.device.empty() ? device->second : std::string(parsed.device), parsed.client_id, fd,
                  engines_of(parsed), memory_of(parsed)};
    const bool has_client = !parsed.driver.empty();  // drivers without drm_show_fdinfo() print no drm-* keys
    if (has_client && is_asked(client.device) && !is_repeated(client)) {
      result_.clients.push_back(std::move(client));
    }
  }

  bool is_asked(const std::string& device) const {
    return std::find(order_.devices.begin(), order_.devices.end(), device) != order_.devices.end();
  }

  // If the kernel cannot compare two descriptors without ids, they count as one: too little is no wrong use.
  bool is_repeated(const Client& client) const {
    return std::any_of(result_.clients.begin(), result_.clients.end(), [&](const Client& other) {
      if (other.device != client.device || other.id != client.id) return false;
      return client.id || is_same_file(pid_, client.fd, pid_, other.fd).value_or(true);
    });
  }

  const LookOrder& order_;
  const int pid_;
  const std::string folder_;
  std::map<Node, std::string> devices_;
  Look result_;
};

void add(std::optional<double>& sum, std::optional<double> bytes) noexcept {
  if (bytes) sum = sum.value_or(0) + *bytes;
}

void add(ClientMemory& sum, const ClientMemory& memory) noexcept {
  add(sum.device, memory.device);
  add(sum.system, memory.system);
  sum.shared_device += memory.shared_device;
  sum.shared_system += memory.shared_system;
}

constexpr Nanoseconds kHangs = std::chrono::seconds(2);

// A scan asks for at most this many looks, since each costs some memory even if the budget is spent.
constexpr std::size_t kMostLooks = 4096;

constexpr Nanoseconds kNever = Nanoseconds::max();

}  // namespace

// A look.

Look look_at(const LookOrder& order, int pid) {
  if (order.clock->monotonic() > order.until) return {};
  return Looker(order, pid).look();
}

std::optional<bool> is_same_file(int pid, int fd, int other_pid, int other_fd) noexcept {
  const long result = ::syscall(SYS_kcmp, pid, other_pid, KCMP_FILE, static_cast<unsigned long>(fd),
                                static_cast<unsigned long>(other_fd));
  return result < 0 ? std::nullopt : std::optional(result == 0);
}

// An account.

void DeviceAccount::take(const std::string& device, const Holders& holders, Nanoseconds now,
                         bool has_read_all) {
  const std::map<Id, Reading> readings = merged(device, holders);
  for (auto& [pid, user] : users_) {
    user.is_present = false;
    user.memory = {};
  }
  learn_clocks(readings);
  for (const auto& [id, reading] : readings) {
    User& user = users_[reading.owner];
    const std::uint64_t start = holders.at(reading.owner).start_ticks;
    if (user.start_ticks != start) user = {start, false, {}, {}};
    user.is_present = true;
    add(user.memory, reading.client.memory);
    if (reading.is_fresh) count(id, reading, user);
  }
  busy_.settle();
  std::erase_if(users_, [](const auto& user) { return !user.second.is_present; });
  std::erase_if(known_, [&](const auto& client) { return !readings.contains(client.first); });
  for (auto& [pid, user] : users_) user.busy.settle();
  now_ = now;
  if (!has_read_all) return;
  if (complete_) observed_ += now - *complete_;
  complete_ = now;
}

void DeviceAccount::interrupt() noexcept {
  known_.clear();
  users_.clear();
  complete_.reset();
}

// The newest reading of a client counts, whichever holder was looked at.
std::map<DeviceAccount::Id, DeviceAccount::Reading> DeviceAccount::merged(const std::string& device,
                                                                          const Holders& holders) const {
  std::map<Id, Reading> readings;
  for (const auto& [pid, holder] : holders) {
    for (const Client& client : holder.clients) {
      if (client.device != device) continue;
      const auto [place, is_first] = readings.try_emplace(id_of(readings, pid, client));
      Reading& reading = place->second;
      if (is_first) reading.owner = pid;
      if (!is_first && holder.at <= reading.at) continue;
      reading.at = holder.at;
      reading.is_fresh = holder.is_fresh;
      reading.is_new = (is_first || reading.is_new) && holder.is_new;
      reading.client = client;
    }
  }
  return readings;
}

DeviceAccount::Id DeviceAccount::id_of(const std::map<Id, Reading>& so_far, int pid,
                                       const Client& client) const {
  if (client.id) return {*client.id, 0};
  for (const auto& [id, reading] : so_far) {
    if (id.pid == 0 || id.pid == pid) continue;  // a look lists each client of a process once
    if (is_same_file(pid, client.fd, id.pid, static_cast<int>(id.number)).value_or(false)) return id;
  }
  return {static_cast<std::uint64_t>(client.fd), pid};
}

// All clients print the same clock. The longest step has the smallest error.
void DeviceAccount::learn_clocks(const std::map<Id, Reading>& readings) {
  std::array<std::uint64_t, kEngineNameCount> longest{};
  for (const auto& [id, reading] : readings) {
    const auto known = known_.find(id);
    if (!reading.is_fresh || known == known_.end()) continue;
    for (const EngineCount& engine : reading.client.engines) {
      const auto before = known->second.find(engine.name);
      if (!engine.in_cycles || before == known->second.end()) continue;
      if (engine.total_cycles <= before->second.total_cycles) continue;
      const std::uint64_t step = engine.total_cycles - before->second.total_cycles;
      if (step <= longest[engine.name]) continue;
      longest[engine.name] = step;
      seconds_per_cycle_[engine.name] =
          to_seconds(reading.at - before->second.at) / static_cast<double>(step);
    }
  }
}

void DeviceAccount::count(const Id& id, const Reading& reading, User& user) {
  const auto [place, is_unknown] = known_.try_emplace(id);
  Known& known = place->second;
  for (const EngineCount& engine : reading.client.engines) {
    const auto before = known.find(engine.name);
    const Count* const last = before == known.end() ? nullptr : &before->second;
    // amdgpu prints an engine once the client has used it: a known client's new engine counts from 0.
    const auto seconds = seconds_of(engine, last, !is_unknown || reading.is_new);
    if (seconds) {
      busy_.add(engine.name, *seconds);
      user.busy.add(engine.name, *seconds);
    }
    // A count may go back for a moment: the highest one holds.
    const std::uint64_t count = last != nullptr ? std::max(last->count, engine.count) : engine.count;
    known[engine.name] = {engine.in_cycles, count, engine.total_cycles, reading.at};
  }
}

// nullopt: the engine's clock is not known yet, or does not run.
std::optional<double> DeviceAccount::seconds_of(const EngineCount& now, const Count* before,
                                                bool from_zero) const {
  const bool is_known = before != nullptr && before->in_cycles == now.in_cycles;
  const bool is_first = before == nullptr;
  const std::uint64_t from = is_known ? before->count : is_first && from_zero ? 0 : now.count;
  const auto step = static_cast<double>(now.count > from ? now.count - from : 0);
  if (!now.in_cycles) return step / 1e9 / now.capacity;
  if (now.total_cycles == 0) return std::nullopt;
  if (step == 0) return 0;
  const double per_cycle = seconds_per_cycle_[now.name];
  return per_cycle > 0 ? std::optional(step * per_cycle / now.capacity) : std::nullopt;
}

DrmUse DeviceAccount::use(unsigned inaccessible) const {
  DrmUse use;
  use.scanned_at = now_;
  use.observed = observed_;
  use.busy_seconds = busy_.seconds();
  use.inaccessible = inaccessible;
  for (const auto& [pid, user] : users_) {
    use.processes.push_back({pid, user.start_ticks, user.busy.seconds(), user.memory.device,
                             user.memory.system, user.memory.shared_device, user.memory.shared_system});
  }
  return use;
}

// The scanner.

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
  const Folder folder(::opendir(sources_.procfs.c_str()));
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

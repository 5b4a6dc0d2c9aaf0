#include "collectors/sources/fdinfo/look.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
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

}  // namespace

Look look_at(const LookOrder& order, int pid) {
  if (order.clock->monotonic() > order.until) return {};
  return Looker(order, pid).look();
}

std::optional<bool> is_same_file(int pid, int fd, int other_pid, int other_fd) noexcept {
  const long result = ::syscall(SYS_kcmp, pid, other_pid, KCMP_FILE, static_cast<unsigned long>(fd),
                                static_cast<unsigned long>(other_fd));
  return result < 0 ? std::nullopt : std::optional(result == 0);
}

}  // namespace gpumeter::fdinfo

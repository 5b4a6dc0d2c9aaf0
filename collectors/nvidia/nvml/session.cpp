#include "collectors/nvidia/nvml/session.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "base/mutex.hpp"
#include "base/text.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {

namespace {

struct Meaning {
  unsigned result;
  Blame blame;
  ReadStatus status;
};
// NOT_FOUND and NO_DATA, which are not listed, mean "nothing at this time": the next pass reads again. A
// wrong struct version counts as unsupported by the library, as does a function that exists but is empty.
constexpr Meaning kMeanings[] = {
    {nvml::kSuccess, Blame::nobody, ReadStatus::ok},
    {nvml::kNotSupported, Blame::call, ReadStatus::unsupported},
    {nvml::kFunctionNotFound, Blame::call, ReadStatus::unsupported},
    {nvml::kArgumentVersionMismatch, Blame::call, ReadStatus::unsupported},
    {nvml::kDeprecated, Blame::call, ReadStatus::unsupported},
    {nvml::kInvalidArgument, Blame::call, ReadStatus::unsupported},
    {nvml::kNoPermission, Blame::call, ReadStatus::denied},
    {nvml::kTimeout, Blame::call, ReadStatus::timeout},
    {nvml::kGpuIsLost, Blame::device, ReadStatus::gone},
    {nvml::kResetRequired, Blame::device, ReadStatus::gone},
    {nvml::kGpuNotFound, Blame::device, ReadStatus::gone},
    {nvml::kUninitialized, Blame::library, ReadStatus::gone},
    {nvml::kDriverNotLoaded, Blame::library, ReadStatus::gone},
    {nvml::kLibRmVersionMismatch, Blame::library, ReadStatus::gone},
};
constexpr Meaning meaning_of(unsigned result) noexcept {
  const auto* const known = std::ranges::find(kMeanings, result, &Meaning::result);
  return known == std::end(kMeanings) ? Meaning{result, Blame::call, ReadStatus::failed} : *known;
}

struct Reason {
  unsigned result;
  std::string_view text;
};
constexpr std::string_view kNodes =
    "/dev/nvidiactl or /dev/nvidia* may not be opened: see their permissions and the service's DeviceAllow=";
constexpr Reason kReasons[] = {
    {nvml::kDriverNotLoaded, "the kernel module is not loaded: modprobe nvidia"},
    {nvml::kLibRmVersionMismatch,
     "reboot needed: the driver's library and its kernel module have different versions, as after an "
     "upgrade; "
     "unloading and loading the module also works"},
    {nvml::kNoPermission, kNodes},
    {nvml::kOperatingSystem, kNodes},
    {nvml::kUninitialized, "NVML was shut down while in use"},
    {nvml::kGpuIsLost, "a GPU has fallen off the bus: reset it (nvidia-smi --gpu-reset) or reboot"},
    {nvml::kResetRequired, "a GPU requires a reset: nvidia-smi --gpu-reset"},
};

/// Containers lose their devices when systemd reloads its units, and then get this error of nvmlInit.
std::string reason_of_init(unsigned result) {
  if (result != nvml::kUnknown) return reason_of(result);
  return "the driver gives no reason (NVML error 999). In a container: access to /dev/nvidia* was lost, "
         "restart the container; otherwise see the NVRM lines in the kernel log";
}

}  // namespace

Blame blame_of(unsigned result) noexcept { return meaning_of(result).blame; }
ReadStatus status_of(unsigned result) noexcept { return meaning_of(result).status; }

bool is_passing_trouble(unsigned result) noexcept {
  return result == nvml::kUnknown || result == nvml::kTimeout || result == nvml::kNotReady ||
         result == nvml::kInvalidState || result == nvml::kMemory;
}

std::string reason_of(unsigned result) {
  const auto* const known = std::ranges::find(kReasons, result, &Reason::result);
  return known == std::end(kReasons) ? "NVML error " + std::to_string(result) : std::string(known->text);
}

namespace {

// The loader's text for ENOENT (glibc, elf/dl-load.c).
constexpr std::string_view kNoSuchFile = "No such file or directory";

/// A session of a path. It is weak: the session ends with its last user, and only `dead` remains until its
/// end is complete.
struct Known {
  std::weak_ptr<NvmlSession> session;
  std::weak_ptr<const std::atomic<bool>> dead;
};

struct Sessions {
  Mutex mutex;
  std::map<std::string, Known> by_path GPUMETER_GUARDED_BY(mutex);
};

Sessions& sessions() {
  static Sessions all;
  return all;
}

}  // namespace

// NVML counts its inits, so a new session opened next to a dead one would find the library unchanged. The
// lock is held over nvmlInit on purpose: if that call hangs, any other user of this library would hang too.
Result<std::shared_ptr<NvmlSession>> NvmlSession::shared(const std::string& path) {
  Sessions& all = sessions();
  MutexLock lock(all.mutex);
  Known& known = all.by_path[path];
  const std::shared_ptr<NvmlSession> live = known.session.lock();
  if (live && !live->is_dead()) return live;
  if (const auto dead = known.dead.lock(); dead && *dead) {
    return Error(path +
                 ": the driver was unloaded while calls were running in it; waiting for them to return");
  }
  Result<std::shared_ptr<NvmlSession>> opened = open(path);
  if (opened) known = {*opened, (*opened)->dead_};
  return opened;
}

Result<std::shared_ptr<NvmlSession>> NvmlSession::open(const std::string& path) {
  Result<DynamicLibrary> library = DynamicLibrary::open(path);
  if (!library) return library.error();
  std::shared_ptr<NvmlSession> session(new NvmlSession(*std::move(library)));
  if (const Result<Done> resolved = session->resolve(); !resolved) return resolved.error().with(path);
  const unsigned result = session->functions_.nvmlInit_v2();
  if (result != nvml::kSuccess) return Error(path + ": " + reason_of_init(result));
  session->initialized_ = true;
  return session;
}

// NOLINTNEXTLINE(readability-function-size): one line, for each function of the list
Result<Done> NvmlSession::resolve() {
#define GPUMETER_NVML_RESOLVE(name, arguments) \
  functions_.name = library_.symbol<decltype(functions_.name)>(#name);
  GPUMETER_NVML_REQUIRED(GPUMETER_NVML_RESOLVE)
  GPUMETER_NVML_OPTIONAL(GPUMETER_NVML_RESOLVE)
#undef GPUMETER_NVML_RESOLVE
#define GPUMETER_NVML_REQUIRE(name, arguments) \
  if (functions_.name == nullptr) return Error("has no " #name ": this driver is too old");
  GPUMETER_NVML_REQUIRED(GPUMETER_NVML_REQUIRE)
#undef GPUMETER_NVML_REQUIRE
  return Done{};
}

NvmlSession::~NvmlSession() {
  listener_.reset();  // its event set belongs to this init
  operational_.reset();
  if (initialized_) functions_.nvmlShutdown();
}

// NOLINTNEXTLINE(readability-function-size): one line, for each function of the list
std::string NvmlSession::missing() const {
  std::string names;
#define GPUMETER_NVML_NAME(name, arguments) \
  if (functions_.name == nullptr) names += names.empty() ? #name : ", " #name;
  GPUMETER_NVML_OPTIONAL(GPUMETER_NVML_NAME)
#undef GPUMETER_NVML_NAME
  return names;
}

bool is_absent(const Error& error) { return error.message().find(kNoSuchFile) != std::string::npos; }

namespace {

using Version = std::pair<unsigned, unsigned>;

// nvml.h 12.9 and 13.0.39 have the earlier ids, 12.8 has neither, and 13.0.87 and later have the new ones.
// nvidia-ml-py 12.575.51 and 13.580.65 have the earlier ids, and 13.580.82 has the new ones.
constexpr Version kFirstEarlier = {575, 0};
constexpr Version kLastEarlier = {580, 65};
constexpr Version kFirstNew = {580, 82};
constexpr unsigned kFirstMoved = 269;
constexpr unsigned kLastMoved = 273;
constexpr unsigned kMovedBy = 18;

/// "580.95.05" is {580, 95}.
Version version_of(std::string_view text) noexcept {
  const auto first = take_number<unsigned>(text);
  text.remove_prefix(std::min<std::size_t>(1, text.size()));
  const auto second = take_number<unsigned>(text);
  return {first.value_or(0), second.value_or(0)};
}

constexpr unsigned kFirstBranch = 535;  // of header 12.2
constexpr unsigned kLastBranch = 545;   // of header 12.3

constexpr unsigned kMostPid = 4'194'304;  // PID_MAX_LIMIT (Linux, include/linux/threads.h)
constexpr unsigned kMostInstance = 64;    // ids of MIG instances are below 16 on known devices

bool is_instance(unsigned id) noexcept { return id == nvml::kNoInstance || id < kMostInstance; }

bool is_plausible(std::span<const std::byte> list, std::size_t count, std::size_t stride) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    nvml::ProcessInfo entry;
    std::memcpy(&entry, list.data() + i * stride, sizeof entry);
    const bool is_process = entry.pid > 0 && entry.pid <= kMostPid;
    if (!is_process || !is_instance(entry.gpu_instance) || !is_instance(entry.compute_instance)) return false;
  }
  return true;
}

}  // namespace

unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept {
  const Version version = version_of(driver_version);
  if (field < kFirstMoved || field > kLastMoved || version < kFirstEarlier || version >= kFirstNew)
    return field;
  return version <= kLastEarlier ? field - kMovedBy : 0;
}

std::string uuid_text(std::span<const unsigned char, 16> uuid) {
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", uuid[i]);
    text += digits.data();
  }
  return text;
}

bool may_be_wide(std::string_view driver_version) noexcept {
  const unsigned branch = take_number<unsigned>(driver_version).value_or(0);
  return branch >= kFirstBranch && branch <= kLastBranch;
}

// A single entry reads the same in both layouts. With several entries, the wide ones end behind the short
// ones, in bytes that nothing else writes. Those bytes decide the layout, unless a library overwrites them.
std::size_t stride_of(std::span<const std::byte> list, std::size_t count) noexcept {
  constexpr std::size_t kShort = sizeof(nvml::ProcessInfo);
  constexpr std::size_t kWide = sizeof(nvml::WideProcessInfo);
  const std::span<const std::byte> behind = list.subspan(count * kShort, count * (kWide - kShort));
  const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
  if (count < 2 || std::all_of(behind.begin(), behind.end(), is_untouched)) return kShort;
  if (is_plausible(list, count, kShort)) return kShort;
  return is_plausible(list, count, kWide) ? kWide : 0;
}

}  // namespace gpumeter::nvidia

#include "collectors/nvidia/nvml/session.hpp"

#include <map>
#include <utility>

#include "base/mutex.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/nvidia/nvml/return_code.hpp"

namespace gpumeter::nvidia {
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

}  // namespace gpumeter::nvidia

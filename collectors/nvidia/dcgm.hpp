#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/sources/dynamic_library.hpp"

/// The profiling counters of GPUs before Hopper, by DCGM's library. It is a client of a host engine that runs
/// already, which has the rights of root that the counters require. Off by default: while the engine counts,
/// no profiler of a job can.
namespace gpumeter::nvidia {

/// Declarations that are the same in DCGM 3.0 to 4.7 (dcgm_agent.h, dcgm_structs.h, dcgm_fields.h).
namespace dcgm {

using Handle = std::uintptr_t;  ///< of a connection, a group of GPUs or a group of fields

inline constexpr int kOk = 0;
inline constexpr int kEmptyGroup = 1;          // DCGM_GROUP_EMPTY
inline constexpr unsigned kEntityGpu = 1;      // DCGM_FE_GPU
inline constexpr unsigned kLive = 1;           // DCGM_FV_FLAG_LIVE_DATA
inline constexpr std::uint16_t kUuid = 54;     // DCGM_FI_DEV_UUID
inline constexpr std::size_t kMostGpus = 32;   // DCGM_MAX_NUM_DEVICES
inline constexpr double kBlank = 1ULL << 47U;  // DCGM_FP64_BLANK; values above it are reasons

/// dcgmConnectV2Params_v2.
struct Connecting {
  unsigned version = 0x02000010;
  unsigned keeps_watches = 0;
  unsigned timeout_ms = 3000;
  unsigned is_unix_socket = 0;
};
/// dcgmGroupEntityPair_t.
struct Entity {
  unsigned kind, id;
};
/// dcgmFieldValue_v2.
struct FieldValue {
  unsigned version, kind, id;
  std::uint16_t field, type;  ///< 'd': a double, 's': a text
  int status;
  unsigned unused;
  std::int64_t time;  ///< microseconds since 1970
  union {
    double real;
    char text[256];
    char blob[4096];
  };
};
static_assert(sizeof(Connecting) == 0x10 && sizeof(FieldValue) == 4128);

/// The fields whose meaning and unit are those of NVML's performance metrics, DCGM_FI_PROF_*: of the graphics
/// engine, the multiprocessors and their occupancy, the tensor pipe, DRAM, FP64, FP32 and FP16, and the
/// tensor pipe's IMMA, HMMA and DFMA.
inline constexpr std::array<std::uint16_t, 11> kFields = {1001, 1002, 1003, 1004, 1005, 1006,
                                                          1007, 1008, 1013, 1014, 1015};

// NOLINTBEGIN(bugprone-macro-parentheses): the list of functions
#define GPUMETER_DCGM_FUNCTIONS(X)                                                  \
  X(int, dcgmInit, ())                                                              \
  X(int, dcgmShutdown, ())                                                          \
  X(int, dcgmConnect_v2, (const char*, Connecting*, Handle*))                       \
  X(int, dcgmDisconnect, (Handle))                                                  \
  X(int, dcgmGetAllDevices, (Handle, unsigned*, int*))                              \
  X(int, dcgmGroupCreate, (Handle, int, const char*, Handle*))                      \
  X(int, dcgmGroupAddDevice, (Handle, Handle, unsigned))                            \
  X(int, dcgmFieldGroupCreate, (Handle, int, std::uint16_t*, const char*, Handle*)) \
  X(int, dcgmWatchFields, (Handle, Handle, Handle, long long, double, int))         \
  X(int, dcgmEntitiesGetLatestValues,                                               \
    (Handle, Entity*, unsigned, std::uint16_t*, unsigned, unsigned, FieldValue*))   \
  X(const char*, errorString, (int))

struct Functions {
#define GPUMETER_DCGM_MEMBER(type, name, arguments) type(*name) arguments = nullptr;
  GPUMETER_DCGM_FUNCTIONS(GPUMETER_DCGM_MEMBER)
#undef GPUMETER_DCGM_MEMBER
};
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace dcgm

/// The latest values of one GPU.
class DcgmGpu {
 public:
  explicit DcgmGpu(std::string its_uuid) : uuid(std::move(its_uuid)) {}
  const std::string uuid;

  /// The field at this place of dcgm::kFields. `unsupported` while DCGM has no value: profiling is paused, a
  /// profiler uses the counters, or the host engine does not answer. The GPU's lane.
  Sample read(std::size_t place, Nanoseconds now) const noexcept;

  /// Takes what the host engine has at this time. Returns whether any field has a value. DCGM's thread.
  bool take(std::span<const dcgm::FieldValue> values, Nanoseconds now) noexcept;

 private:
  struct Latest {
    std::atomic<double> value{0};
    std::atomic<Nanoseconds::rep> taken{0};  // CLOCK_MONOTONIC; 0: there is none
    std::int64_t time = 0;                   // the engine's own time of the value; DCGM's thread
  };
  std::array<Latest, dcgm::kFields.size()> latest_;
};

/// The conversation with the host engine. DCGM's thread calls it, except for what any thread may call.
class DcgmClient {
 public:
  /// `address`: HOST, HOST:PORT or unix:/PATH. `libraries`: file names for the loader, the preferred first.
  DcgmClient(std::string address, std::vector<std::string> libraries)
      : address_(std::move(address)), libraries_(std::move(libraries)) {}
  DcgmClient(const DcgmClient&) = delete;
  DcgmClient& operator=(const DcgmClient&) = delete;

  /// The values of a GPU, which is watched as long as the result is held. Any thread.
  std::shared_ptr<DcgmGpu> gpu(const std::string& uuid);

  /// Why there are no values; empty if there are. Any thread.
  std::string trouble() const;

  /// Reads the values of all GPUs. Connects first if necessary, and ends the connection if no GPU is held.
  /// Returns the pause until the next turn. May block. `now`: CLOCK_MONOTONIC.
  Nanoseconds turn(Nanoseconds now);

  /// Ends the connection. May block.
  void close() noexcept;

 private:
  struct Watch {
    std::optional<unsigned> id;  // in the engine; none: it refused the GPU
    Nanoseconds since{};         // of the last value, otherwise of the last attempt to watch the GPU
  };

  std::vector<std::shared_ptr<DcgmGpu>> held();
  Result<Done> load();
  Result<Done> connect();
  Result<Done> read(std::span<const std::shared_ptr<DcgmGpu>> gpus, Nanoseconds now, std::string& trouble);
  Result<Done> watch(const std::string& uuid, Watch& watch, std::string& trouble);
  Result<std::optional<unsigned>> find(const std::string& uuid);
  int watch_fields(dcgm::Handle group, std::span<const std::uint16_t> fields);
  int get(unsigned id, std::span<const std::uint16_t> fields, unsigned flags);
  std::string new_name();
  Error failure(const std::string& what, int result) const;

  const std::string address_;
  const std::vector<std::string> libraries_;
  std::optional<DynamicLibrary> library_;
  dcgm::Functions dcgm_;
  bool is_initialized_ = false;
  std::optional<dcgm::Handle> connection_;
  std::map<std::string, Watch> watches_;  // by uuid, of this connection
  std::array<dcgm::FieldValue, dcgm::kFields.size()> values_{};
  Nanoseconds pause_{};
  unsigned names_ = 0;

  mutable Mutex mutex_;
  std::vector<std::weak_ptr<DcgmGpu>> gpus_ GPUMETER_GUARDED_BY(mutex_);
  std::string trouble_ GPUMETER_GUARDED_BY(mutex_);
};

/// The client with its thread, "nvidia-dcgm", so that a hanging library delays no other source. Any thread.
class Dcgm {
 public:
  /// `hanging` may be null.
  Dcgm(const std::string& address, const Clock& clock, std::shared_ptr<HangingCalls> hanging,
       std::vector<std::string> libraries = {"libdcgm.so.4", "libdcgm.so.3"});
  ~Dcgm();
  Dcgm(const Dcgm&) = delete;
  Dcgm& operator=(const Dcgm&) = delete;

  /// As DcgmClient's. The first call starts the thread.
  std::shared_ptr<DcgmGpu> gpu(const std::string& uuid);
  std::string trouble() const;

 private:
  const Clock& clock_;
  const std::shared_ptr<HangingCalls> hanging_;
  const std::shared_ptr<DcgmClient> client_;
  mutable Mutex mutex_;
  bool is_started_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::string refused_ GPUMETER_GUARDED_BY(mutex_);  // why the thread does not run
  Worker worker_;
};

}  // namespace gpumeter::nvidia

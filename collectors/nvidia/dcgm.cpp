#include "collectors/nvidia/dcgm.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/readers.hpp"

namespace gpumeter::nvidia {

using namespace dcgm;

namespace {

// The engine reads the counters once a second: each value is the mean since the one before.
constexpr Nanoseconds kEvery = std::chrono::seconds(1);
constexpr Nanoseconds kRarest = std::chrono::minutes(1);
// An engine under load skips seconds.
constexpr Nanoseconds kStale = std::chrono::seconds(5);
// How long a call, and the first value, may take before there is a message.
constexpr Nanoseconds kPatience = std::chrono::seconds(10);

constexpr std::string_view kUnix = "unix:";
constexpr const char* kHangKey = "nvidia-dcgm";

bool has_number(const FieldValue& value) noexcept {
  return value.status == kOk && value.type == 'd' && value.real < kBlank;  // false for NaN
}

/// Returns the name of a function that the library lacks, or null.
const char* resolve(const DynamicLibrary& library, Functions& functions) {
  const char* missing = nullptr;
#define GPUMETER_DCGM_RESOLVE(type, name, arguments)                 \
  functions.name = library.symbol<decltype(Functions::name)>(#name); \
  if (functions.name == nullptr) missing = #name;
  GPUMETER_DCGM_FUNCTIONS(GPUMETER_DCGM_RESOLVE)
#undef GPUMETER_DCGM_RESOLVE
  return missing;
}

}  // namespace

Sample DcgmGpu::read(std::size_t place, Nanoseconds now) const noexcept {
  const Latest& latest = latest_[place];
  const Nanoseconds taken(latest.taken.load());
  const bool is_known = taken != Nanoseconds{0} && now - taken <= kStale;
  return is_known ? Sample::of(latest.value.load()) : Sample::miss(ReadStatus::unsupported);
}

// An engine that has stopped counting repeats its last value with the same time, and the first value may be
// from before the watch.
bool DcgmGpu::take(std::span<const FieldValue> values, Nanoseconds now) noexcept {
  bool has_any = false;
  for (const FieldValue& value : values) {
    const auto* const field = std::ranges::find(kFields, value.field);
    if (field == kFields.end()) continue;
    const auto place = static_cast<std::size_t>(field - kFields.begin());
    Latest& latest = latest_[place];
    const std::int64_t before = std::exchange(latest.time, value.time);
    if (!has_number(value)) {
      latest.taken = 0;
    } else if (before != 0 && before != value.time) {
      latest.value = value.real;
      latest.taken = now.count();
    }
    has_any = has_any || read(place, now).status == ReadStatus::ok;
  }
  return has_any;
}

std::shared_ptr<DcgmGpu> DcgmClient::gpu(const std::string& uuid) {
  auto fresh = std::make_shared<DcgmGpu>(uuid);
  MutexLock lock(mutex_);
  std::erase_if(gpus_, [](const auto& gpu) { return gpu.expired(); });
  gpus_.push_back(fresh);
  return fresh;
}

std::vector<std::shared_ptr<DcgmGpu>> DcgmClient::held() {
  MutexLock lock(mutex_);
  std::vector<std::shared_ptr<DcgmGpu>> all;
  for (const auto& gpu : gpus_) {
    if (auto alive = gpu.lock()) all.push_back(std::move(alive));
  }
  return all;
}

std::string DcgmClient::trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

Nanoseconds DcgmClient::turn(Nanoseconds now) {
  const std::vector<std::shared_ptr<DcgmGpu>> gpus = held();
  std::string trouble;
  const Result<Done> done = gpus.empty() ? Done{} : read(gpus, now, trouble);
  if (gpus.empty() || !done) close();
  pause_ = done ? kEvery : std::clamp(pause_ * 2, kEvery, kRarest);
  MutexLock lock(mutex_);
  trouble_ = done ? trouble : done.error().message();
  return pause_;
}

Result<Done> DcgmClient::load() {
  if (library_) return Done{};
  std::string reasons;
  for (const std::string& name : libraries_) {
    Result<DynamicLibrary> opened = DynamicLibrary::open(name);
    if (opened) {
      library_ = *std::move(opened);
      break;
    }
    reasons += (reasons.empty() ? "" : "; ") + opened.error().message();
  }
  if (!library_) return Error(reasons + ". Install the library of NVIDIA's DCGM, or set the key to off");
  const char* const missing = resolve(*library_, dcgm_);
  if (missing == nullptr) return Done{};
  library_.reset();
  return Error("DCGM's library has no " + std::string(missing) + ": versions 3 and 4 are supported");
}

Error DcgmClient::failure(const std::string& what, int result) const {
  const char* const words = dcgm_.errorString(result);
  return Error(what + ": " + (words != nullptr ? words : "error") + " (" + std::to_string(result) + ")");
}

Result<Done> DcgmClient::connect() {
  if (connection_) return Done{};
  if (Result<Done> loaded = load(); !loaded) return loaded;
  if (const int result = dcgm_.dcgmInit(); result != kOk) return failure("dcgmInit", result);
  is_initialized_ = true;
  Connecting how;
  std::string where = address_;
  how.is_unix_socket = where.starts_with(kUnix) ? 1 : 0;
  if (how.is_unix_socket != 0) where.erase(0, kUnix.size());
  Handle connection = 0;
  const int result = dcgm_.dcgmConnect_v2(where.c_str(), &how, &connection);
  if (result != kOk) return failure("no host engine (nv-hostengine) answers at " + address_, result);
  connection_ = connection;
  return Done{};
}

// A call of the whole engine that fails ends the connection: the engine may have been restarted.
Result<Done> DcgmClient::read(std::span<const std::shared_ptr<DcgmGpu>> gpus, Nanoseconds now,
                              std::string& trouble) {
  if (Result<Done> connected = connect(); !connected) return connected;
  for (const std::shared_ptr<DcgmGpu>& gpu : gpus) {
    const auto [known, is_new] = watches_.try_emplace(gpu->uuid);
    Watch& one = known->second;
    if (is_new || (!one.id && now - one.since > kRarest)) {
      one.since = now;
      if (Result<Done> asked = watch(gpu->uuid, one, trouble); !asked) return asked;
    }
    if (!one.id) continue;
    if (const int result = get(*one.id, kFields, 0); result != kOk)
      return failure("dcgmEntitiesGetLatestValues", result);
    if (gpu->take(values_, now)) one.since = now;
    if (now - one.since > kPatience)
      trouble = "DCGM has no values for " + gpu->uuid +
                ": profiling is paused (dcgmi profile --resume ends that), or a profiler uses the counters";
  }
  return Done{};
}

// A group for each GPU, because a group of different models is refused as a whole. If the fields cannot be
// counted together, each is watched by itself, and those that the GPU lacks are left out.
Result<Done> DcgmClient::watch(const std::string& uuid, Watch& watch, std::string& trouble) {
  const Result<std::optional<unsigned>> id = find(uuid);
  if (!id) return id.error();
  if (!*id) {
    trouble = "the host engine at " + address_ + " does not know " + uuid;
    return Done{};
  }
  Handle group = 0;
  int result = dcgm_.dcgmGroupCreate(*connection_, kEmptyGroup, new_name().c_str(), &group);
  if (result == kOk) result = dcgm_.dcgmGroupAddDevice(*connection_, group, **id);
  if (result != kOk) return failure("dcgmGroupCreate", result);
  result = watch_fields(group, kFields);
  bool is_watched = result == kOk;
  for (std::size_t i = 0; i < kFields.size() && result != kOk; ++i)
    is_watched = watch_fields(group, std::span(kFields).subspan(i, 1)) == kOk || is_watched;
  if (is_watched) watch.id = *id;
  if (!is_watched) trouble = failure("DCGM does not profile " + uuid, result).message();
  return Done{};
}

Result<std::optional<unsigned>> DcgmClient::find(const std::string& uuid) {
  std::array<unsigned, kMostGpus> ids{};
  int count = 0;
  const int result = dcgm_.dcgmGetAllDevices(*connection_, ids.data(), &count);
  if (result != kOk) return failure("dcgmGetAllDevices", result);
  const auto most = static_cast<int>(ids.size());
  for (const unsigned id : std::span(ids).first(static_cast<std::size_t>(std::clamp(count, 0, most)))) {
    constexpr std::array kField = {kUuid};
    const bool is_known = get(id, kField, kLive) == kOk && values_[0].status == kOk && values_[0].type == 's';
    const std::string_view text(values_[0].text, sizeof values_[0].text);
    if (is_known && text.substr(0, text.find('\0')) == uuid) return std::optional(id);
  }
  return std::optional<unsigned>();
}

// Keeps two values for a few seconds: only the latest is read.
int DcgmClient::watch_fields(Handle group, std::span<const std::uint16_t> fields) {
  std::vector<std::uint16_t> ids(fields.begin(), fields.end());
  Handle of_fields = 0;
  const int result = dcgm_.dcgmFieldGroupCreate(*connection_, static_cast<int>(ids.size()), ids.data(),
                                                new_name().c_str(), &of_fields);
  if (result != kOk) return result;
  const long long microseconds = std::chrono::microseconds(std::chrono::seconds(1)).count();
  return dcgm_.dcgmWatchFields(*connection_, group, of_fields, microseconds, to_seconds(kStale), 2);
}

int DcgmClient::get(unsigned id, std::span<const std::uint16_t> fields, unsigned flags) {
  std::array<std::uint16_t, kFields.size()> ids{};
  std::ranges::copy(fields, ids.begin());
  values_ = {};
  Entity gpu{kEntityGpu, id};
  return dcgm_.dcgmEntitiesGetLatestValues(*connection_, &gpu, 1, ids.data(),
                                           static_cast<unsigned>(fields.size()), flags, values_.data());
}

// The engine refuses a name that another client's group has.
std::string DcgmClient::new_name() {
  return "gpumeter-" + std::to_string(getpid()) + "-" + std::to_string(++names_);
}

// The engine drops the watches of a connection that ends.
void DcgmClient::close() noexcept {
  if (connection_) dcgm_.dcgmDisconnect(*connection_);
  if (std::exchange(is_initialized_, false)) dcgm_.dcgmShutdown();
  connection_.reset();
  watches_.clear();
}

Dcgm::Dcgm(const std::string& address, const Clock& clock, std::shared_ptr<HangingCalls> hanging,
           std::vector<std::string> libraries)
    : clock_(clock),
      hanging_(hanging ? std::move(hanging) : std::make_shared<HangingCalls>()),
      client_(std::make_shared<DcgmClient>(address, std::move(libraries))),
      worker_(clock) {}

// The thread may hang. It owns the client, and reads the clock only before it calls the library.
Dcgm::~Dcgm() {
  constexpr Nanoseconds kEnd = std::chrono::seconds(1);
  MutexLock lock(mutex_);
  if (!is_started_) return;
  hanging_->add(kHangKey);
  if (worker_.stop(clock_.monotonic() + kEnd)) hanging_->remove(kHangKey);
}

std::shared_ptr<DcgmGpu> Dcgm::gpu(const std::string& uuid) {
  MutexLock lock(mutex_);
  std::shared_ptr<DcgmGpu> one = client_->gpu(uuid);  // before the thread, whose first turn finds it
  if (!is_started_) {
    const Result<Done> started =
        hanging_->contains(kHangKey)
            ? Error("a call of DCGM's library that hung before the reload has not returned")
            : worker_.start(
                  "nvidia-dcgm",
                  [client = client_, &clock = clock_] { return client->turn(clock.monotonic()); },
                  [client = client_, hanging = hanging_] {
                    client->close();
                    hanging->remove(kHangKey);
                  });
    is_started_ = static_cast<bool>(started);
    refused_ = started ? "" : started.error().message();
  }
  return one;
}

std::string Dcgm::trouble() const {
  MutexLock lock(mutex_);
  if (!refused_.empty()) return refused_;
  if (worker_.is_busy_for(kPatience)) return "DCGM's library does not answer";
  return client_->trouble();
}

namespace {

Reader profiled(NvidiaContext& context, const ReadSource& source) {
  const DcgmGpu* const gpu = context.dcgm();
  if (gpu == nullptr) return {};
  return [&context, gpu, place = source.argument] { return gpu->read(place, context.now()); };
}

// Means of a second. `forgets`: they end while profiling is paused.
constexpr Traits kProfiled{.min = 0, .max = 1, .forgets = true};
constexpr Row row(std::uint16_t id, std::string_view field, const MetricDescriptor& family,
                  const MetricDescriptor& seconds, LabelSet labels = {}) {
  const auto place = std::ranges::find(kFields, id) - kFields.begin();
  return {&family, labels, {profiled, field, place}, 1, Tier::fast, averaged(seconds), kProfiled};
}

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    row(1001, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", catalog::engine_utilization, catalog::engine_busy_seconds, {"engine", "graphics"}),
    row(1002, "DCGM_FI_PROF_SM_ACTIVE", catalog::compute_active, catalog::compute_active_seconds),
    row(1003, "DCGM_FI_PROF_SM_OCCUPANCY", catalog::compute_occupancy, catalog::compute_occupancy_seconds),
    row(1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", catalog::pipe_active, catalog::pipe_active_seconds, {"pipe", "tensor"}),
    row(1005, "DCGM_FI_PROF_DRAM_ACTIVE", catalog::memory_bandwidth_utilization, catalog::memory_bandwidth_utilization_seconds),
    row(1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", catalog::pipe_active, catalog::pipe_active_seconds, {"pipe", "fp64"}),
    row(1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", catalog::pipe_active, catalog::pipe_active_seconds, {"pipe", "fp32"}),
    row(1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", catalog::pipe_active, catalog::pipe_active_seconds, {"pipe", "fp16"}),
    row(1013, "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", catalog::tensor_active, catalog::tensor_active_seconds, {"kind", "int"}),
    row(1014, "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", catalog::tensor_active, catalog::tensor_active_seconds, {"kind", "fp16"}),
    row(1015, "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", catalog::tensor_active, catalog::tensor_active_seconds, {"kind", "fp64"}),
});
// clang-format on
static_assert(valid_table(kRows));

}  // namespace

std::span<const Row> profiled_rows() noexcept { return kRows; }

}  // namespace gpumeter::nvidia

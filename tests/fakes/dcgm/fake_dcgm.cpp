// A libdcgm whose host engine is a file: $FAKE_DCGM has words, and the library appends what it is asked to
// $FAKE_DCGM.log. Structs, limits and answers are those of dcgm_structs.h, dcgm_agent.h and
// DcgmFieldGroup.cpp of DCGM 3.3 and 4.7; blank values while profiling is paused as in its test_prof.py
// (test_dcgm_prof_pause_resume_values).
//
// - GPU-...: the engine has this GPU, with the ids 3, 4 and so on.
// - down: there is no engine, and connections are void.
// - paused: values are blank.
// - still: values keep their time.
// - hang: the next call returns when the word is gone.
// - single: the engine refuses to count several fields together.
// - lacks-ID: it refuses this field.
// - none: it refuses all fields.
//
// Field ID has the value (ID - 1000) / 100.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Handle = std::uintptr_t;
constexpr int kOk = 0, kBadParameter = -1, kUninitialized = -10, kVersion = -12, kNotWatched = -16;
constexpr int kInvalidConnection = -21, kDuplicate = -26, kMultiPass = -38, kFieldUnknown = -32;
constexpr double kBlank = 140737488355328.0;

struct ConnectParams {
  unsigned version, persist, timeout_ms, is_unix;
};
struct Entity {
  unsigned group, id;
};
struct Value {
  unsigned version, group, id;
  std::uint16_t field, type;
  int status;
  unsigned unused;
  std::int64_t ts;
  union {
    std::int64_t i64;
    double dbl;
    char str[256];
    char blob[4096];
  } value;
};

struct Engine {
  bool is_initialized = false;
  Handle connection = 0, connections = 0, handles = 100;
  std::set<std::string> names;
  std::map<Handle, std::vector<std::uint16_t>> field_groups;
  std::map<Handle, std::vector<unsigned>> gpu_groups;
  std::map<unsigned, std::set<std::uint16_t>> watches;
  std::int64_t time = 1'700'000'000'000'000;
} engine;

std::string file() {
  const char* const name = std::getenv("FAKE_DCGM");
  return name != nullptr ? name : "/dev/null";
}

std::vector<std::string> words() {
  std::ifstream in(file());
  return {std::istream_iterator<std::string>(in), {}};
}
bool is_told(const std::string& wanted) {
  for (const std::string& word : words()) {
    if (word == wanted) return true;
  }
  return false;
}
std::vector<std::string> uuids() {
  std::vector<std::string> found;
  for (const std::string& word : words()) {
    if (word.starts_with("GPU-")) found.push_back(word);
  }
  return found;
}

void log(const std::string& line) { std::ofstream(file() + ".log", std::ios::app) << line << '\n'; }

int begin(Handle connection) {
  if (is_told("hang")) log("hangs");
  while (is_told("hang")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (!engine.is_initialized) return kUninitialized;
  return is_told("down") || connection == 0 || connection != engine.connection ? kInvalidConnection : kOk;
}

void fill(Value& value, unsigned gpu, bool is_live) {
  const std::string uuid = uuids().at(gpu - 3);
  if (value.field == 54 && is_live) {
    value.type = 's';
    std::strncpy(value.value.str, uuid.c_str(), sizeof value.value.str - 1);
    return;
  }
  value.type = 'd';
  value.ts = engine.time;
  value.value.dbl = is_told("paused") ? kBlank : (value.field - 1000) / 100.0;
  if (engine.watches[gpu].contains(value.field)) return;
  value.status = kNotWatched;
  value.value.dbl = kBlank;
  value.ts = 0;
}

}  // namespace

extern "C" {

const char* errorString(int result) {
  if (result == kInvalidConnection) return "Host engine connection invalid/disconnected";
  if (result == kMultiPass) return "The requested profiling metrics cannot be collected in a single pass";
  if (result == kFieldUnknown) return "Unsupported field";
  return "Error";
}

int dcgmInit() {
  engine.is_initialized = true;
  return kOk;
}

int dcgmShutdown() {
  engine.is_initialized = false;
  return kOk;
}

int dcgmConnect_v2(const char* address, ConnectParams* how, Handle* connection) {
  if (how->version != (sizeof(ConnectParams) | 2U << 24U)) return kVersion;
  log("connect " + std::string(address) + (how->is_unix != 0 ? " by its socket" : ""));
  engine.connection = ++engine.connections;
  engine.names.clear();
  engine.watches.clear();
  *connection = engine.connection;
  return begin(*connection);
}

int dcgmDisconnect(Handle) {
  log("disconnect");
  engine.connection = 0;
  return kOk;
}

int dcgmGetAllDevices(Handle connection, unsigned* ids, int* count) {
  if (const int result = begin(connection); result != kOk) return result;
  *count = 0;
  for (std::size_t i = 0; i < uuids().size(); ++i) ids[(*count)++] = static_cast<unsigned>(i) + 3;
  return kOk;
}

int dcgmGroupCreate(Handle connection, int type, const char*, Handle* group) {
  if (const int result = begin(connection); result != kOk) return result;
  if (type != 1) return kBadParameter;
  *group = ++engine.handles;
  engine.gpu_groups[*group] = {};
  return kOk;
}

int dcgmGroupAddDevice(Handle connection, Handle group, unsigned gpu) {
  if (const int result = begin(connection); result != kOk) return result;
  engine.gpu_groups.at(group).push_back(gpu);
  return kOk;
}

int dcgmFieldGroupCreate(Handle connection, int count, std::uint16_t* fields, const char* name,
                         Handle* group) {
  if (const int result = begin(connection); result != kOk) return result;
  if (!engine.names.insert(name).second) return kDuplicate;
  *group = ++engine.handles;
  engine.field_groups[*group] = {fields, fields + count};
  return kOk;
}

int dcgmWatchFields(Handle connection, Handle group, Handle fields, long long frequency, double, int) {
  if (const int result = begin(connection); result != kOk) return result;
  const std::vector<std::uint16_t>& wanted = engine.field_groups.at(fields);
  if (is_told("none")) return kFieldUnknown;
  if (wanted.size() > 1 && is_told("single")) return kMultiPass;
  for (const std::uint16_t field : wanted) {
    if (is_told("lacks-" + std::to_string(field))) return kFieldUnknown;
  }
  for (const unsigned gpu : engine.gpu_groups.at(group)) {
    engine.watches[gpu].insert(wanted.begin(), wanted.end());
    log("watch " + std::to_string(wanted.size()) + " fields of " + std::to_string(gpu) + " every " +
        std::to_string(frequency) + " us");
  }
  return kOk;
}

int dcgmEntitiesGetLatestValues(Handle connection, Entity* entities, unsigned count, std::uint16_t* fields,
                                unsigned field_count, unsigned flags, Value* values) {
  if (const int result = begin(connection); result != kOk) return result;
  if (!is_told("still")) engine.time += 1'000'000;
  for (unsigned i = 0; i < count; ++i) {
    if (entities[i].group != 1 || entities[i].id < 3 || entities[i].id >= 3 + uuids().size())
      return kBadParameter;
    for (unsigned j = 0; j < field_count; ++j) {
      Value& value = *values++;
      std::memset(&value, 0, sizeof value);
      value = Value{sizeof(Value) | 2U << 24U, 1, entities[i].id, fields[j], 'd', kOk, 0, 0, {}};
      fill(value, entities[i].id, (flags & 1U) != 0);
    }
  }
  return kOk;
}
}

#include "exporter/http/renderings.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace gpumeter {
namespace {

/// Lanes of the waiting room.
constexpr unsigned kUsual = 0;
constexpr unsigned kOthers = 1;

constexpr HttpHeader kBusyHeaders[] = {{"X-Content-Type-Options", "nosniff"}, {"Retry-After", "1"}};

HttpResponse busy() {
  return {.status = 503,
          .body = "Too many large pages are being rendered, try again later.\n",
          .headers = kBusyHeaders};
}

/// Requests with the same key have the same answer. HEAD has that of GET, whose body the library omits. No
/// part contains a NUL, where the library's own texts end.
std::string key_of(const HttpRequest& request) {
  std::string key;
  const auto add = [&key](std::string_view part) { key.append(part).push_back('\0'); };
  for (const std::string_view part :
       {request.path, request.accept, request.accept_encoding, request.if_none_match})
    add(part);
  for (const auto& [name, value] : request.query) {
    add(name);
    add(value);
  }
  return key;
}

/// A request that outlives the library's memory: its views are of the key.
struct OwnedRequest {
  OwnedRequest(std::string its_key, const HttpRequest& from) : key(std::move(its_key)), request(from) {
    request.method = "GET";
    std::string_view rest = key;
    for (std::string_view* const part :
         {&request.path, &request.accept, &request.accept_encoding, &request.if_none_match})
      *part = take_until(rest, '\0');
    for (auto& [name, value] : request.query) {
      name = take_until(rest, '\0');
      value = take_until(rest, '\0');
    }
  }
  OwnedRequest(const OwnedRequest&) = delete;
  OwnedRequest& operator=(const OwnedRequest&) = delete;

  const std::string key;
  HttpRequest request;
};

}  // namespace

struct Renderings::State {
  using Room = WaitingRoom<std::string, std::shared_ptr<const OwnedRequest>, HttpResponse>;
  struct Finished {
    HttpResponse response;
    Nanoseconds at{};
  };

  State(const Clock& the_clock, Render how) : clock(the_clock), render(std::move(how)) {}

  const Clock& clock;
  const Render render;
  Mutex mutex;
  Room room GPUMETER_GUARDED_BY(mutex){kMostWaiting, busy()};
  std::map<std::string, Finished> fresh GPUMETER_GUARDED_BY(mutex);
  bool has_scrapes GPUMETER_GUARDED_BY(mutex) = false;  ///< the thread for usual pages runs

  std::optional<Room::Job> take(unsigned lanes) GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    std::erase_if(fresh,
                  [now = clock.monotonic()](const auto& entry) { return now - entry.second.at >= kFresh; });
    return room.take(lanes);
  }

  void finish(const std::string& key, HttpResponse response) GPUMETER_EXCLUDES(mutex) {
    if (response.page == nullptr && response.bytes == nullptr) {
      response.bytes = std::make_shared<const std::string>(std::exchange(response.body, {}));
    }
    const MutexLock lock(mutex);
    room.finish(key, response);
    if (fresh.size() >= kMostWaiting) {
      fresh.erase(std::ranges::min_element(fresh, {}, [](const auto& entry) { return entry.second.at; }));
    }
    fresh.insert_or_assign(key, Finished{std::move(response), clock.monotonic()});
  }

  /// One turn of a thread. Returns when the last answers are old, so that they do not stay in memory.
  Nanoseconds run(unsigned lanes) GPUMETER_EXCLUDES(mutex) {
    while (const auto job = take(lanes)) finish(job->key, render(job->work->request));
    const MutexLock lock(mutex);
    return fresh.empty() ? Worker::kForever : kFresh;
  }
};

Renderings::Renderings(const Clock& clock, Render render)
    : state_(std::make_shared<State>(clock, std::move(render))), scrapes_(clock), all_(clock) {}

Renderings::~Renderings() {
  close();
  stop();
}

Result<Done> Renderings::start() {
  return all_.start("web-render", [state = state_] { return state->run(kOthers); });
}

void Renderings::close() {
  const MutexLock lock(state_->mutex);
  state_->room.close();
}

void Renderings::stop() {
  scrapes_.request_stop();
  all_.stop();
  scrapes_.join();
}

std::optional<HttpResponse> Renderings::answer(const HttpRequest& request, const Asking& asking,
                                               const Pausing& pausing) {
  State& state = *state_;
  const std::string key = key_of(request);
  const Waiter waiter{asking.connection, asking.peer, pausing.resume};
  const MutexLock lock(state.mutex);
  const auto fresh = state.fresh.find(key);
  if (fresh != state.fresh.end() && state.clock.monotonic() - fresh->second.at < kFresh)
    return fresh->second.response;
  if (!state.room.join(key, waiter)) {
    const unsigned lane = asking.kind == Rendering::usual ? kUsual : kOthers;
    const unsigned rank = asking.kind == Rendering::other ? 0 : 1;
    if (state.room.add({key, std::make_shared<const OwnedRequest>(key, request), lane, rank, {waiter}}) ==
        key)
      return busy();
    // If the kernel refuses the thread, the other one renders these pages too.
    if (lane == kUsual && !state.has_scrapes) {
      const auto started = scrapes_.start("web-scrapes", [same = state_] { return same->run(kUsual); });
      state.has_scrapes = static_cast<bool>(started);
    }
    if (lane == kUsual) scrapes_.wake();
    all_.wake();
  }
  pausing.pause(asking.connection);
  return std::nullopt;
}

std::optional<HttpResponse> Renderings::answer_to(void* connection) {
  const MutexLock lock(state_->mutex);
  return state_->room.answer_to(connection);
}

void Renderings::release(void* connection) {
  const MutexLock lock(state_->mutex);
  state_->room.release(connection);
}

void Renderings::forget(void* connection) {
  const MutexLock lock(state_->mutex);
  state_->room.forget(connection);
}

}  // namespace gpumeter

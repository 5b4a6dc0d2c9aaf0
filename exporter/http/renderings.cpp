#include "exporter/http/renderings.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpumeter {
namespace {

constexpr HttpHeader kBusyHeaders[] = {{"X-Content-Type-Options", "nosniff"}, {"Retry-After", "1"}};

HttpResponse busy() {
  return {.status = 503,
          .body = "Too many large pages are being rendered, try again later.\n",
          .headers = kBusyHeaders};
}

/// A request that outlives the library's memory.
class OwnedRequest {
 public:
  explicit OwnedRequest(const HttpRequest& from)
      : from_(from),
        method_(from.method),
        path_(from.path),
        accept_(from.accept),
        accept_encoding_(from.accept_encoding),
        if_none_match_(from.if_none_match) {
    for (const auto& [name, value] : from.query) query_.emplace_back(name, value);
    from_.query.clear();
  }

  /// Valid as long as this object.
  HttpRequest view() const {
    HttpRequest request = from_;
    request.method = method_;
    request.path = path_;
    request.accept = accept_;
    request.accept_encoding = accept_encoding_;
    request.if_none_match = if_none_match_;
    for (const auto& [name, value] : query_) request.query.emplace_back(name, value);
    return request;
  }

 private:
  HttpRequest from_;  ///< the flags
  std::string method_, path_, accept_, accept_encoding_, if_none_match_;
  std::vector<std::pair<std::string, std::string>> query_;
};

/// Requests with the same key have the same answer. HEAD has that of GET, whose body the library omits.
std::string key_of(const HttpRequest& request) {
  std::string key;
  const auto add = [&key](std::string_view part) {
    key.append(std::to_string(part.size())).append(":").append(part);
  };
  for (const std::string_view part :
       {request.path, request.accept, request.accept_encoding, request.if_none_match})
    add(part);
  for (const auto& [name, value] : request.query) add(name), add(value);
  return key;
}

}  // namespace

struct Renderings::State {
  struct Waiter {
    void* connection;
    void (*resume)(void* connection) noexcept;
  };
  struct Rendering {
    std::string key;
    std::shared_ptr<const OwnedRequest> request;
    bool is_scrape = false;
    std::vector<Waiter> waiters = {};
  };
  struct Finished {
    HttpResponse response;
    Nanoseconds at{};
  };

  State(const Clock& the_clock, std::string path, Render how)
      : clock(the_clock), scrape_path(std::move(path)), render(std::move(how)) {}

  const Clock& clock;
  const std::string scrape_path;
  const Render render;
  Mutex mutex;
  std::deque<Rendering> wanted GPUMETER_GUARDED_BY(mutex);
  std::optional<Rendering> running GPUMETER_GUARDED_BY(mutex);
  std::map<std::string, Finished> fresh GPUMETER_GUARDED_BY(mutex);
  std::map<void*, HttpResponse> answers GPUMETER_GUARDED_BY(mutex);  ///< of resumed requests
  bool is_closed GPUMETER_GUARDED_BY(mutex) = false;

  // A request is paused until it is resumed here, under the mutex, so it exists. Resuming sets a flag and
  // wakes a thread; it does not block.
  void resume(const std::vector<Waiter>& waiters, const HttpResponse& response) GPUMETER_REQUIRES(mutex) {
    for (const Waiter& waiter : waiters) {
      answers.insert_or_assign(waiter.connection, response);
      waiter.resume(waiter.connection);
    }
  }

  Rendering* find(const std::string& key) GPUMETER_REQUIRES(mutex) {
    if (running && running->key == key) return &*running;
    const auto found = std::ranges::find(wanted, key, &Rendering::key);
    return found == wanted.end() ? nullptr : &*found;
  }

  void drop_old() GPUMETER_REQUIRES(mutex) {
    std::erase_if(fresh,
                  [now = clock.monotonic()](const auto& entry) { return now - entry.second.at >= kFresh; });
  }

  std::shared_ptr<const OwnedRequest> take() GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    drop_old();
    if (wanted.empty()) return nullptr;
    auto next = std::ranges::find(wanted, true, &Rendering::is_scrape);
    if (next == wanted.end()) next = wanted.begin();
    running = std::move(*next);
    wanted.erase(next);
    return running->request;
  }

  void finish(HttpResponse response) GPUMETER_EXCLUDES(mutex) {
    if (response.page == nullptr && response.bytes == nullptr) {
      response.bytes = std::make_shared<const std::string>(std::exchange(response.body, {}));
    }
    const MutexLock lock(mutex);
    resume(running->waiters, response);
    if (fresh.size() >= kMostWaiting) {
      fresh.erase(std::ranges::min_element(fresh, {}, [](const auto& entry) { return entry.second.at; }));
    }
    fresh.insert_or_assign(std::move(running->key), Finished{std::move(response), clock.monotonic()});
    running.reset();
  }

  /// One turn of the thread. Returns when the last answers are old, so that they do not stay in memory.
  Nanoseconds run() GPUMETER_EXCLUDES(mutex) {
    while (const auto request = take()) finish(render(request->view()));
    const MutexLock lock(mutex);
    return fresh.empty() ? Worker::kForever : kFresh;
  }
};

Renderings::Renderings(const Clock& clock, std::string scrape_path, Render render)
    : state_(std::make_shared<State>(clock, std::move(scrape_path), std::move(render))), worker_(clock) {}

Renderings::~Renderings() {
  close();
  stop();
}

Result<Done> Renderings::start() {
  return worker_.start("web-render", [state = state_] { return state->run(); });
}

void Renderings::close() {
  const MutexLock lock(state_->mutex);
  state_->is_closed = true;
  for (const State::Rendering& each : state_->wanted) state_->resume(each.waiters, busy());
  state_->wanted.clear();
  if (state_->running) state_->resume(std::exchange(state_->running->waiters, {}), busy());
}

void Renderings::stop() { worker_.stop(); }

std::optional<HttpResponse> Renderings::answer(const HttpRequest& request, void* connection,
                                               const Pausing& pausing) {
  State& state = *state_;
  const std::string key = key_of(request);
  const MutexLock lock(state.mutex);
  if (auto answered = state.answers.extract(connection)) return std::move(answered.mapped());
  if (state.is_closed) return busy();
  const auto fresh = state.fresh.find(key);
  if (fresh != state.fresh.end() && state.clock.monotonic() - fresh->second.at < kFresh)
    return fresh->second.response;
  State::Rendering* rendering = state.find(key);
  if (rendering == nullptr) {
    const bool is_scrape = request.path == state.scrape_path;
    const auto waiting = std::ranges::count(state.wanted, is_scrape, &State::Rendering::is_scrape);
    if (static_cast<std::size_t>(waiting) >= kMostWaiting) return busy();
    state.wanted.push_back({key, std::make_shared<const OwnedRequest>(request), is_scrape});
    rendering = &state.wanted.back();
    worker_.wake();
  }
  rendering->waiters.push_back({connection, pausing.resume});
  pausing.pause(connection);
  return std::nullopt;
}

void Renderings::release(void* connection) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  const auto release_from = [&](State::Rendering& rendering) GPUMETER_REQUIRES(state.mutex) {
    const auto waiter = std::ranges::find(rendering.waiters, connection, &State::Waiter::connection);
    if (waiter == rendering.waiters.end()) return;
    const State::Waiter released = *waiter;
    rendering.waiters.erase(waiter);
    state.resume({released}, busy());
  };
  for (State::Rendering& each : state.wanted) release_from(each);
  std::erase_if(state.wanted, [](const State::Rendering& each) { return each.waiters.empty(); });
  if (state.running) release_from(*state.running);
}

void Renderings::forget(void* connection) {
  const MutexLock lock(state_->mutex);
  state_->answers.erase(connection);
}

}  // namespace gpumeter

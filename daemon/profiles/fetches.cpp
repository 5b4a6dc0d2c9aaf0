#include "daemon/profiles/fetches.hpp"

#include <sys/socket.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "collectors/profiles/search/sockets.hpp"
#include "daemon/profiles/fetch.hpp"

namespace gpumeter {

/// A trace and its thread.
class Fetches::Call {
 public:
  Call(const Clock& clock, Order order)
      : shared_(std::make_shared<Shared>(std::move(order))), worker_(clock) {}
  ~Call() { shared_->stop(); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void start() {
    const Result<Done> started =
        worker_.start("trace-fetch", [shared = shared_]() -> std::optional<Nanoseconds> {
          shared->run();
          return std::nullopt;
        });
    if (!started) shared_->end(started.error().message());
  }
  /// The error, or an empty text; once, and nullopt before the end.
  std::optional<std::string> take_end() {
    const MutexLock lock(shared_->mutex);
    return std::exchange(shared_->ended, std::nullopt);
  }

 private:
  /// Also owned by the thread, which may outlive the call.
  struct Shared {
    explicit Shared(Order its_order)
        : order(std::move(its_order)),
          connection(std::make_shared<const Descriptor>(std::move(order.connection))) {}

    void run() GPUMETER_EXCLUDES(mutex) {
      const Result<std::uint64_t> size = fetch();
      end(size ? "" : size.error().message());
    }
    Result<std::uint64_t> fetch() GPUMETER_EXCLUDES(mutex) {
      const std::string folder = std::filesystem::path(order.path).parent_path().string();
      if (const Result<Done> made = make_room(folder, kMostInFolder - kMostBytes); !made) return made.error();
      if (const Result<Done> connected = connect(); !connected) return connected.error();
      const auto open = the_connection();
      return fetch_to_file(*open, order.request, {order.path, order.reader, kMostBytes}, order.patience);
    }
    Result<Done> connect() GPUMETER_EXCLUDES(mutex) {
      if (order.socket.empty()) return Done{};
      Result<Descriptor> made = profiles::connect_to_socket(order.socket, order.reader);
      if (!made) return made.error();
      const MutexLock lock(mutex);
      if (is_stopped) return Error("the daemon stops");
      connection = std::make_shared<const Descriptor>(*std::move(made));
      return Done{};
    }
    std::shared_ptr<const Descriptor> the_connection() GPUMETER_EXCLUDES(mutex) {
      const MutexLock lock(mutex);
      return connection;
    }
    // A wait for the process ends with the connection.
    void stop() GPUMETER_EXCLUDES(mutex) {
      const MutexLock lock(mutex);
      is_stopped = true;
      ::shutdown(connection->number(), SHUT_RDWR);
    }
    void end(std::string error) GPUMETER_EXCLUDES(mutex) {
      const MutexLock lock(mutex);
      ended = std::move(error);
    }

    Order order;
    Mutex mutex;
    std::shared_ptr<const Descriptor> connection GPUMETER_GUARDED_BY(mutex);
    bool is_stopped GPUMETER_GUARDED_BY(mutex) = false;
    std::optional<std::string> ended GPUMETER_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Shared> shared_;
  Worker worker_;
};

Fetches::Fetches(const Clock& clock) : clock_(clock) {}
Fetches::~Fetches() = default;

void Fetches::start(int pid, Order order) {
  auto& call = calls_[pid];
  call = std::make_unique<Call>(clock_, std::move(order));
  call->start();
}

std::vector<Fetches::Ended> Fetches::take_ended() {
  std::vector<Ended> ended;
  for (const auto& [pid, call] : calls_) {
    if (auto error = call->take_end()) ended.push_back({pid, *std::move(error)});
  }
  return ended;
}

void Fetches::stop(int pid) { calls_.erase(pid); }

}  // namespace gpumeter

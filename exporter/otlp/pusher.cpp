#include "exporter/otlp/pusher.hpp"

#include <curl/curl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>
#include <vector>

#include "base/build_info.hpp"
#include "collectors/sources/dynamic_library.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter::push {
namespace {

/// Debian has both; the daemon's TLS is GnuTLS already.
constexpr std::array kLibraries = {"libcurl-gnutls.so.4", "libcurl.so.4"};

// Of an answer's body. A longer one is not retried (OTLP Specification, "OTLP/HTTP Response").
constexpr std::size_t kMostBytes = std::size_t{4} << 20U;

constexpr Nanoseconds kFirstPause = std::chrono::seconds(1);
constexpr Nanoseconds kLongestPause = std::chrono::minutes(2);
// A receiver may ask for a longer pause, but not for the end.
constexpr Nanoseconds kLongestDemand = std::chrono::hours(1);

constexpr long kTooManyRequests = 429, kBadGateway = 502, kUnavailable = 503, kGatewayTimeout = 504;
constexpr long kSuccess = 2, kHundred = 100;

bool may_retry(long status) noexcept {
  return status == kTooManyRequests || status == kBadGateway || status == kUnavailable ||
         status == kGatewayTimeout;
}

/// The functions of libcurl. All programs use the same version of its interface since 2006.
struct Curl {
  DynamicLibrary library;
  decltype(&curl_global_init) global_init = library.symbol<decltype(global_init)>("curl_global_init");
  decltype(&curl_easy_init) easy_init = library.symbol<decltype(easy_init)>("curl_easy_init");
  decltype(&curl_easy_cleanup) cleanup = library.symbol<decltype(cleanup)>("curl_easy_cleanup");
  decltype(&curl_easy_setopt) set = library.symbol<decltype(set)>("curl_easy_setopt");
  decltype(&curl_easy_perform) perform = library.symbol<decltype(perform)>("curl_easy_perform");
  decltype(&curl_easy_getinfo) info = library.symbol<decltype(info)>("curl_easy_getinfo");
  decltype(&curl_easy_strerror) words = library.symbol<decltype(words)>("curl_easy_strerror");
  decltype(&curl_slist_append) append = library.symbol<decltype(append)>("curl_slist_append");
  decltype(&curl_slist_free_all) free_all = library.symbol<decltype(free_all)>("curl_slist_free_all");

  bool is_whole() const noexcept {
    return global_init != nullptr && easy_init != nullptr && cleanup != nullptr && set != nullptr &&
           perform != nullptr && info != nullptr && words != nullptr && append != nullptr &&
           free_all != nullptr;
  }
};

Result<Curl> load() {
  std::string problems;
  for (const char* const name : kLibraries) {
    Result<DynamicLibrary> library = DynamicLibrary::open(name);
    if (!library) {
      problems += (problems.empty() ? "" : "; ") + library.error().message();
      continue;
    }
    Curl curl{*std::move(library)};
    // Libraries below it leave handlers of threads' ends behind, so that none may be unloaded.
    const bool stays = dlopen(name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
    if (stays && curl.is_whole() && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return curl;
    problems += std::string(problems.empty() ? "" : "; ") + name + ": not usable";
  }
  return Error(problems);
}

}  // namespace

/// The outcome of an attempt.
struct Pusher::Answer {
  long status = 0;  ///< 0: there is none
  std::string body = {};
  bool is_too_long = false;
  std::string problem = {};  ///< empty: the answer is complete
  Nanoseconds demanded{};    ///< the receiver's pause
};

class Pusher::Connection {
 public:
  Connection(Curl curl, const Target& target) : curl_(std::move(curl)), easy_(curl_.easy_init()) {
    if (easy_ == nullptr) return;
    add_header("Expect:");  // the receiver's approval of long messages, for which libcurl would wait
    if (target.is_compressed) add_header("Content-Encoding: gzip");
    for (const auto& [name, value] : target.headers) add_header(name + ": " + value);
    set(CURLOPT_URL, target.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_POST, 1L);
    set(CURLOPT_HTTPHEADER, headers_);
    set(CURLOPT_USERAGENT, user_agent_.c_str());
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(target.timeout.count()));
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(target.timeout.count()));
    set(CURLOPT_ERRORBUFFER, problem_.data());
    set(CURLOPT_WRITEFUNCTION, &Connection::receive);
    set(CURLOPT_WRITEDATA, this);
    if (!target.ca_file.empty()) set(CURLOPT_CAINFO, target.ca_file.c_str());
    if (!target.cert_file.empty()) set(CURLOPT_SSLCERT, target.cert_file.c_str());
    if (!target.key_file.empty()) set(CURLOPT_SSLKEY, target.key_file.c_str());
  }
  ~Connection() {
    curl_.cleanup(easy_);
    curl_.free_all(headers_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Answer post(const std::string& body) {
    answer_ = {};
    if (easy_ == nullptr) return {.problem = "libcurl could not be initialized"};
    problem_.front() = '\0';
    set(CURLOPT_POSTFIELDS, body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    const CURLcode code = curl_.perform(easy_);
    curl_off_t seconds = 0;
    curl_.info(easy_, CURLINFO_RESPONSE_CODE, &answer_.status);
    curl_.info(easy_, CURLINFO_RETRY_AFTER, &seconds);
    answer_.demanded =
        std::chrono::seconds(std::clamp<curl_off_t>(seconds, 0, kLongestDemand / std::chrono::seconds(1)));
    if (answer_.is_too_long) answer_.problem = "the receiver's answer is longer than 4 MiB";
    // libcurl's own message has milliseconds and bytes: a log would repeat it each time.
    else if (code == CURLE_OPERATION_TIMEDOUT)
      answer_.problem = "no complete answer in time";
    else if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING)
      answer_.problem = "the answer ends too early";
    else if (code != CURLE_OK)
      answer_.problem = problem_.front() == '\0' ? curl_.words(code) : problem_.data();
    return std::move(answer_);
  }

 private:
  template <class Value>
  void set(CURLoption option, Value value) {
    curl_.set(easy_, option, value);
  }
  void add_header(const std::string& line) { headers_ = curl_.append(headers_, line.c_str()); }

  static std::size_t receive(const char* bytes, std::size_t size, std::size_t count, void* connection) {
    Answer& answer = static_cast<Connection*>(connection)->answer_;
    answer.is_too_long = answer.body.size() + size * count > kMostBytes;
    if (answer.is_too_long) return 0;  // ends the transfer with an error
    answer.body.append(bytes, size * count);
    return size * count;
  }

  const Curl curl_;
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
  const std::string user_agent_ = std::string("gpumeter/") + build::kVersion;
  std::array<char, CURL_ERROR_SIZE> problem_{};
  Answer answer_;
};

Result<std::shared_ptr<Pusher>> Pusher::open(Target target, Judge judge, const Clock& clock) {
  Result<Curl> curl = load();
  if (!curl) return curl.error();
  auto connection = std::make_shared<Connection>(*std::move(curl), target);
  return std::shared_ptr<Pusher>(
      new Pusher(std::move(connection), std::move(target), std::move(judge), clock));
}

Pusher::Pusher(std::shared_ptr<Connection> connection, Target target, Judge judge, const Clock& clock)
    : connection_(std::move(connection)),
      target_(std::move(target)),
      judge_(std::move(judge)),
      clock_(clock) {}

void Pusher::add(Message message) {
  if (target_.is_compressed) {
    Result<std::string> packed = gzip(message.body);
    if (!packed) {
      figures_.dropped += message.points;
      return;
    }
    message.body = *std::move(packed);
  }
  figures_.queued_bytes += message.body.size();
  queue_.push_back(std::move(message));
  while (figures_.queued_bytes > kMostQueued) {
    figures_.dropped += queue_.front().points;
    pop();
  }
}

void Pusher::send(Nanoseconds until) {
  if (clock_.monotonic() < not_before_) return;
  while (!queue_.empty() && attempt() && clock_.monotonic() < until) {
  }
}

// Returns false if the message stays in the queue.
bool Pusher::attempt() {
  const Answer answer = connection_->post(queue_.front().body);
  const bool is_taken = answer.status / kHundred == kSuccess;
  const bool is_lost = !answer.problem.empty() && !answer.is_too_long;
  if (is_lost || may_retry(answer.status)) {
    figures_.problem = is_lost ? answer.problem : "status " + std::to_string(answer.status);
    retry(answer.demanded);
    return false;
  }
  const std::size_t points = queue_.front().points;
  const Verdict verdict = judge_(answer.body, is_taken);
  const std::size_t rejected = is_taken ? std::min(verdict.rejected, points) : points;
  figures_.sent += points - rejected;
  figures_.rejected += rejected;
  figures_.problem = answer.problem;
  if (!is_taken) figures_.problem = "status " + std::to_string(answer.status);
  if (!verdict.text.empty()) figures_.problem += (figures_.problem.empty() ? "" : ": ") + verdict.text;
  if (rejected > 0 && figures_.problem.empty()) figures_.problem = "points are rejected";
  pause_ = {};
  pop();
  return true;
}

// The jitter keeps the nodes of a cluster from coming back at once.
void Pusher::retry(Nanoseconds demanded) {
  pause_ = std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  std::uniform_real_distribution<double> share(0.5, 1);
  std::random_device device;
  const auto jittered = std::chrono::duration_cast<Nanoseconds>(pause_ * share(device));
  not_before_ = clock_.monotonic() + std::max(demanded, jittered);
}

void Pusher::pop() {
  figures_.queued_bytes -= queue_.front().body.size();
  queue_.pop_front();
}

}  // namespace gpumeter::push

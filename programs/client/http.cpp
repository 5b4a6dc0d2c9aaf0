#include "programs/client/http.hpp"

#include <curl/curl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "base/options.hpp"
#include "base/text.hpp"

namespace gpumeter::client {
namespace {

constexpr std::string_view kPort = "10478";

using Url = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

/// Returns an empty text if the URL lacks the part.
std::string part_of(const Url& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::string this_machine() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string host_for_people(const Url& url) {
  std::string host = part_of(url, CURLUPART_HOST);
  if (host == "localhost" || host == "[::1]" || host.starts_with("127.")) host = this_machine();
  const std::string port = part_of(url, CURLUPART_PORT);
  return port.empty() || port == kPort ? host : host + ":" + port;
}

/// Carries bytes in both directions until one of the sockets ends.
void relay(const Descriptor& one, const Descriptor& other) {
  std::array<char, 65536> bytes;
  while (true) {
    pollfd ends[] = {{one.number(), POLLIN, 0}, {other.number(), POLLIN, 0}};
    if (poll(ends, 2, -1) < 0 && errno != EINTR) return;
    for (const auto& [from, to] : {std::pair(ends[0], ends[1]), std::pair(ends[1], ends[0])}) {
      if (from.revents == 0) continue;
      const ssize_t size = recv(from.fd, bytes.data(), bytes.size(), 0);
      if (size <= 0) return;
      for (ssize_t sent = 0, part = 0; sent < size; sent += part) {
        part = send(to.fd, bytes.data() + sent, static_cast<std::size_t>(size - sent), MSG_NOSIGNAL);
        if (part <= 0) return;
      }
    }
  }
}

/// Relays the first connection of this process: every user may connect to the listener.
void relay_own(const Descriptor& listener, const Descriptor& server) {
  ucred peer{};
  Descriptor own;
  do {
    own = Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC));
    socklen_t size = sizeof peer;
    if (!own || getsockopt(own.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  } while (peer.pid != getpid());
  relay(own, server);
}

/// Blocks for `limit` at most. The descriptor is empty, and errno set, if it failed.
Descriptor connected_to(const sockaddr_vm& machine, std::chrono::milliseconds limit) {
  Descriptor server(socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timeval wait{seconds.count(), std::chrono::microseconds(limit - seconds).count()};
  setsockopt(server.number(), AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &wait, sizeof wait);
  const auto* address = reinterpret_cast<const sockaddr*>(&machine);
  if (server && connect(server.number(), address, sizeof machine) == 0) return server;
  const int why = errno;
  server = Descriptor();
  errno = why;
  return server;
}

Result<Address> address_of(const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) {
    const std::string path = text.substr(kUnix.size());
    if (!path.starts_with('/')) return Error("the path of a Unix socket must begin with /");
    return Address{"http://localhost", this_machine(), path};
  }
  if (text.starts_with(vsock::kScheme)) {
    const auto machine = vsock::parse(text);
    if (!machine || machine->svm_cid == VMADDR_CID_ANY)
      return Error("write vsock:CID:PORT; CID 2 is the host of a virtual machine");
    return Address{"http://127.0.0.1", text, {}, machine};
  }
  const bool has_scheme = text.find("://") != std::string::npos;
  const std::string whole =
      has_scheme ? text : (text.starts_with(':') ? "http://localhost" : "http://") + text;
  const Url url(curl_url(), curl_url_cleanup);
  const CURLUcode code = curl_url_set(url.get(), CURLUPART_URL, whole.c_str(), 0);
  if (code != CURLUE_OK) return Error(curl_url_strerror(code));
  const std::string scheme = part_of(url, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return Error("the scheme must be http or https");
  if (!has_scheme && part_of(url, CURLUPART_PORT).empty())
    curl_url_set(url.get(), CURLUPART_PORT, std::string(kPort).c_str(), 0);
  curl_url_set(url.get(), CURLUPART_QUERY, nullptr, 0);
  curl_url_set(url.get(), CURLUPART_FRAGMENT, nullptr, 0);
  Address address{part_of(url, CURLUPART_URL), host_for_people(url)};
  while (address.url.ends_with('/')) address.url.pop_back();
  return address;
}

}  // namespace

Result<Address> parse_address(const std::string& text, const std::string& ca_file,
                              const std::string& login_file) {
  Result<Address> address = address_of(text);
  if (!address) return address.error().with(gpumeter::quoted(options::printable(text)));
  address->text = text;
  address->ca_file = ca_file;
  if (login_file.empty()) return address;
  Result<Login> login = read_login(login_file);
  if (!login) return login.error();
  address->login = *std::move(login);
  return address;
}

struct HttpClient::Session {
  Address address;
  std::size_t most_bytes;
  CURL* curl = curl_easy_init();
  int connect_error = 0;  ///< errno of connect()
  std::chrono::milliseconds connect_limit{};
  bool was_refused = false;
  std::string body = {};
  std::array<char, CURL_ERROR_SIZE> problem{};

  ~Session() { curl_easy_cleanup(curl); }

  /// libcurl cannot connect to AF_VSOCK. It connects to a relay, whose name the kernel chooses (unix(7)).
  static curl_socket_t connect_machine(void* session, curlsocktype, curl_sockaddr* to) {
    Session& self = *static_cast<Session*>(session);
    Descriptor server = connected_to(*self.address.machine, self.connect_limit);
    Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr name{.sa_family = AF_UNIX, .sa_data = {}};
    socklen_t size = sizeof name;
    if (!server || !listener || bind(listener.number(), &name, sizeof name.sa_family) != 0 ||
        listen(listener.number(), 1) != 0 || getsockname(listener.number(), &name, &size) != 0) {
      self.connect_error = errno;
      return CURL_SOCKET_BAD;
    }
    to->family = AF_UNIX;
    to->protocol = 0;
    to->addrlen = size;
    to->addr = name;
    std::thread(relay_own, std::move(listener), std::move(server))
        .detach();  // ends with libcurl's connection
    return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }

  static std::size_t append(const char* bytes, std::size_t size, std::size_t count, void* session) {
    Session& self = *static_cast<Session*>(session);
    if (self.body.size() + size * count > self.most_bytes) return 0;  // ends the transfer with an error
    self.body.append(bytes, size * count);
    return size * count;
  }
};

HttpClient::HttpClient(Address to, const Limits& limits, const char* user_agent)
    : session_(new Session{
          .address = std::move(to), .most_bytes = limits.bytes, .connect_limit = limits.connect}) {
  CURL* curl = session_->curl;
  if (curl == nullptr) return;
  const Address& address = session_->address;
  if (!address.socket.empty()) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, address.socket.c_str());
  if (address.machine) {
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, &Session::connect_machine);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, session_.get());
  }
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(limits.total.count()));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, user_agent);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, session_->problem.data());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Session::append);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, session_.get());
  if (!address.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, address.ca_file.c_str());
  if (address.login.user.empty()) return;
  curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
  curl_easy_setopt(curl, CURLOPT_USERNAME, address.login.user.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, address.login.password.c_str());
}

HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;

bool HttpClient::was_refused() const noexcept { return session_->was_refused; }

Result<HttpClient::Answer> HttpClient::get(const std::string& path) {
  CURL* curl = session_->curl;
  if (curl == nullptr) return Error("libcurl could not be initialized");
  session_->problem.front() = '\0';
  session_->body.clear();
  session_->connect_error = 0;
  curl_easy_setopt(curl, CURLOPT_URL, (session_->address.url + path).c_str());
  const CURLcode code = curl_easy_perform(curl);
  long error = session_->connect_error;
  if (error == 0) curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error);
  // ECONNRESET: of AF_VSOCK, if no process listens.
  session_->was_refused =
      code == CURLE_COULDNT_CONNECT && (error == ECONNREFUSED || error == ECONNRESET || error == ENOENT);
  if (session_->connect_error != 0) return Error(std::generic_category().message(session_->connect_error));
  if (code == CURLE_WRITE_ERROR)
    return Error("the answer is longer than " + std::to_string(session_->most_bytes >> 20U) + " MiB");
  // libcurl's own messages have milliseconds and bytes: a log would repeat them each time.
  if (code == CURLE_OPERATION_TIMEDOUT) return Error("no complete answer in time");
  if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING) return Error("the answer ends too early");
  if (code != CURLE_OK) {
    const std::string problem = session_->problem.data();
    return Error(problem.empty() ? curl_easy_strerror(code) : problem);
  }
  Answer answer{0, std::move(session_->body)};
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace gpumeter::client

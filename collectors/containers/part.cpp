#include "collectors/containers/part.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/workload_settings.hpp"

namespace gpumeter::containers {
namespace {

using Json = nlohmann::json;
using options::Option;
using options::option;
using options::Reload;

constexpr std::size_t kMostSources = 8;
constexpr std::size_t kMostContainers = 4096;
constexpr std::size_t kMostBytes = 8U << 20U;  // Docker 20.10 writes 750 bytes for a container
constexpr Nanoseconds kPatience = std::chrono::seconds(2);
constexpr Nanoseconds kLookEvery = std::chrono::seconds(1);
constexpr Nanoseconds kReadEvery = std::chrono::minutes(1);  // a container may get another name

options::Complaint check_sources(const std::vector<std::string>& sources) {
  if (sources.size() > kMostSources) return "must have at most 8 paths";
  for (const std::string& source : sources) {
    if (source.empty()) return "must have no empty path";
    if (options::Complaint wrong = options::check_socket_path(source)) return wrong;
  }
  return std::nullopt;
}

// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::sources>("sources", Reload::applies, "Sockets of Docker and Podman, such as `[/run/docker.sock, /run/podman/podman.sock]`, or files of root's with their lists (docs/workloads.md#names-of-containers): names and images of containers. Whoever may open such a socket is root on the machine.", options::checked<check_sources>),
};
// clang-format on

Error failed() { return Error(std::generic_category().message(errno)); }

Result<std::string> body_of(std::string_view answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  const std::string_view status = answer.substr(0, answer.find('\r'));
  if (!status.starts_with("HTTP/1.") || status.find(" 200 ") == std::string_view::npos) {
    return Error("the answer is " + options::printable(status.substr(0, 100)));
  }
  if (end == std::string_view::npos) return Error("the answer ends within its headers");
  return std::string(answer.substr(end + 4));
}

// HTTP/1.0: the server sends the body as it is, and closes the connection after it.
Result<std::string> ask(const std::string& path, const Clock& clock) {
  constexpr std::string_view kRequest = "GET /containers/json HTTP/1.0\r\n\r\n";
  const Nanoseconds deadline = clock.monotonic() + kPatience;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor server(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (!server || connect(server.number(), any, sizeof address) != 0) return failed();
  if (send(server.number(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0) return failed();
  std::string answer;
  while (answer.size() <= kMostBytes) {
    pollfd polled{server.number(), POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.monotonic());
    if (left.count() <= 0 || poll(&polled, 1, static_cast<int>(left.count())) == 0) {
      return Error("no complete answer within 2 s");
    }
    std::array<char, 65536> piece;
    const ssize_t size = recv(server.number(), piece.data(), piece.size(), 0);
    if (size == 0) return body_of(answer);
    if (size > 0) answer.append(piece.data(), static_cast<std::size_t>(size));
    if (size < 0 && errno != EAGAIN && errno != EINTR) return failed();
  }
  return Error("the answer is longer than 8 MiB");
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  // Of several names the first: the others are a container's names in links of others.
  const Json& value = found->is_array() && !found->empty() ? found->front() : *found;
  return value.is_string() ? value.get<std::string>() : std::string();
}

class ContainerNames final : public Part {
 public:
  explicit ContainerNames(const PartContext& context)
      : settings_(context.settings_of<Settings>()),
        workloads_(context.machine.workloads),
        clock_(context.clock),
        log_(context.log) {}
  ~ContainerNames() override {
    for (const std::string& source : settings_.sources) workloads_->names->publish(name_of(source), {});
  }

  Nanoseconds turn(Nanoseconds now) override {
    const std::uint64_t generation = workloads_->book->generation();
    const bool is_due = now >= reads_at_;
    if (std::exchange(looked_at_, generation) == generation && !is_due) return kLookEvery;
    if (is_due) reads_at_ = now + kReadEvery;
    if (has_container(is_due))
      std::ranges::for_each(settings_.sources, [this](const auto& each) { take(each); });
    return kLookEvery;
  }

 private:
  static std::string name_of(const std::string& source) { return "containers " + source; }

  // The kubelet names the containers of pods.
  bool has_container(bool is_any_enough) const {
    return std::ranges::any_of(workloads_->book->workloads(), [&](const auto& workload) {
      return workload.facts.container_id.value() && !workload.facts.pod_uid.value() &&
             (is_any_enough || workloads_->names->labels_of(workload.facts).empty());
    });
  }

  // One line of the log for each change. An id belongs to one container for ever, so old names are not wrong.
  void take(const std::string& source) {
    const Result<std::string> list = read_list(source, clock_);
    Result<workloads::Names> names = list ? parse_list(*list) : list.error();
    const std::string error = names ? "" : names.error().message();
    if (std::exchange(errors_[source], error) != error) {
      error.empty() ? log_.info("names of containers are read again", {{"source", source}})
                    : log_.warn("names of containers are not read; those that are known stay",
                                {{"source", source}, {"error", error}});
    }
    if (names) workloads_->names->publish(name_of(source), *std::move(names));
  }

  const Settings settings_;
  const std::shared_ptr<const WorkloadSettings> workloads_;
  const Clock& clock_;
  Log& log_;
  std::map<std::string, std::string> errors_;  ///< the last one of each source; empty: none
  std::uint64_t looked_at_ = 0;                ///< the generation of the workloads
  Nanoseconds reads_at_{};
};

std::shared_ptr<Part> open(const PartContext& context) {
  if (context.machine.workloads == nullptr || context.settings_of<Settings>().sources.empty()) return nullptr;
  return std::make_shared<ContainerNames>(context);
}

}  // namespace

Result<workloads::Names> parse_list(std::string_view list) {
  const Json containers = Json::parse(list, nullptr, false);
  if (!containers.is_array()) return Error("the answer is no list of containers");
  workloads::Names names;
  for (const Json& each : containers) {
    const std::string id = text_of(each, "Id");
    std::string name = text_of(each, "Names");
    if (name.starts_with('/')) name.erase(0, 1);
    std::vector<Label> labels;
    for (const auto& [label, text] :
         {std::pair("container_image", text_of(each, "Image")), {"container_name", name}}) {
      if (!text.empty()) labels.push_back({label, cgroup::label_text(text)});
    }
    if (id.empty() || labels.empty() || names.labels.size() >= kMostContainers) continue;
    names.labels[{workloads::NameKey::By::container_id, id}] = std::move(labels);
  }
  return names;
}

Result<std::string> read_list(const std::string& source, const Clock& clock) {
  struct stat facts {};
  if (stat(source.c_str(), &facts) != 0) return failed();
  if (S_ISSOCK(facts.st_mode)) return ask(source, clock);
  const PathOfFile path(source);
  const Result<Folder> folder = Folder::open_trusted(path.folder);
  if (!folder) return folder.error();
  auto file = folder->read_of(folder->owner(), path.name, kMostBytes);
  if (!file) return Error("it is no socket, and no file of the owner of its folder");
  return std::move(file->text);
}

constinit const options::Section kSection = options::section("containers", kOptions);

const PartEntry kPart = {.name = "containers",
                         .options = &kSection,
                         .deadline = kMostSources * kPatience + std::chrono::seconds(2),
                         .is_on_single_page = true,
                         .open = open};

}  // namespace gpumeter::containers

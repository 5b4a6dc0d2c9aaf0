#include <grp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/bounded_calls.hpp"
#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"
#include "daemon/control/server.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

Result<Descriptor> connect_to(const std::string& folder) {
  Result<sockaddr_un> address = control::address_in(folder);
  if (!address) return address.error();
  Result<Descriptor> opened = control::open_socket();
  if (!opened) return opened;
  control::limit_time(*opened);
  const auto* const any = reinterpret_cast<const sockaddr*>(&*address);
  if (connect(opened->number(), any, sizeof *address) == 0) return opened;
  const int error = errno;
  return Error("another process uses " + folder + ", and it cannot be asked: " + address->sun_path + ": " +
               std::strerror(error) + (error == EACCES ? "; run it as root" : ""));
}

Result<Done> ask_daemon(const std::string& folder, const std::string& uuid) {
  const Result<Descriptor> connection = connect_to(folder);
  if (!connection) return connection.error();
  if (Result<Done> sent = control::write_line(*connection, std::string(control::kForget) + uuid); !sent) {
    return sent.error().with("the daemon");
  }
  const Result<std::string> answer = control::read_line(*connection);
  if (!answer) return answer.error().with("the daemon");
  if (*answer == control::kOk) return Done{};
  return Error(readable(
      answer->starts_with(control::kError) ? answer->substr(control::kError.size()) : *answer, is_control));
}

std::string known_devices(const DeviceDirectory& directory) {
  std::string text;
  for (const auto& [uuid, device] : directory.devices()) text += (text.empty() ? "" : ", ") + uuid;
  return text.empty() ? "none" : text;
}

Result<Done> edit_file(const std::string& folder, const std::string& uuid) {
  DeviceDirectory directory(folder);
  if (Result<Done> loaded = directory.load(); !loaded) return loaded;
  if (!directory.forget(uuid)) {
    return Error(uuid + " is not a known device; known are " + known_devices(directory));
  }
  return directory.save();
}

/// Root has no business of its own in the folder: whatever its owner put there then does no more than the
/// owner may.
Result<Done> become_owner_of(const std::string& path) {
  const Result<Folder> folder = Folder::open(path);
  if (!folder) return with_advice(folder.error());
  const uid_t owner = folder->owner();
  const gid_t group = folder->group();
  if (geteuid() != 0 || owner == 0) return Done{};
  const bool is_done =
      setgroups(1, &group) == 0 && setresgid(group, group, group) == 0 && setresuid(owner, owner, owner) == 0;
  if (!is_done) return Error(path + ": cannot become its owner: " + std::strerror(errno));
  return Done{};
}

}  // namespace

Error with_advice(const Error& error) {
  return geteuid() == 0 ? error : Error(error.message() + "; run it as root");
}

Result<Done> forget_device(const std::string& folder, const std::string& uuid) {
  if (uuid.find_first_of("\n\r") != std::string::npos) return Error("a uuid is one line");
  if (Result<Done> done = become_owner_of(folder); !done) return done;
  const Result<FolderLock> lock = FolderLock::take(folder);
  if (!lock) return with_advice(lock.error());
  return lock->is_ours() ? edit_file(folder, uuid) : ask_daemon(folder, uuid);
}

// The call answers with the text of its Error, which is empty if the device is forgotten.
Result<Done> forget_device_in_time(const std::string& folder, const std::string& uuid, const Clock& clock) {
  BoundedCalls calls("forget", kForgetPatience, clock);
  const auto answers = calls.ask<std::string>({uuid}, [folder](const std::string& each) {
    const Result<Done> done = forget_device(folder, each);
    return done ? std::string() : done.error().message();
  });
  if (!answers.has_asked) return Error("the system has no thread left");
  const auto answer = answers.values.find(uuid);
  if (answer == answers.values.end()) {
    return Error(folder + " has not answered for " + std::to_string(kForgetPatience.count()) +
                 " s; its file system hangs. Try again when it answers");
  }
  return answer->second.empty() ? Result<Done>(Done{}) : Error(answer->second);
}

}  // namespace gpumeter

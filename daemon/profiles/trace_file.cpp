#include "daemon/profiles/trace_file.hpp"

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

namespace gpumeter {
namespace {

namespace fs = std::filesystem;

struct AccessList {  // the value of system.posix_acl_access, little-endian
  posix_acl_xattr_header header;
  posix_acl_xattr_entry entries[5];
};
static_assert(sizeof(AccessList) == 4 + 5 * 8);

posix_acl_xattr_entry entry(int tag, int rights, std::uint32_t id = static_cast<std::uint32_t>(-1)) {
  return {htole16(static_cast<std::uint16_t>(tag)), htole16(static_cast<std::uint16_t>(rights)), htole32(id)};
}

/// The owner writes and reads, the user reads, nobody else does anything.
AccessList readable_by(std::uint32_t uid) {
  return {{htole32(POSIX_ACL_XATTR_VERSION)},
          {entry(ACL_USER_OBJ, ACL_READ | ACL_WRITE), entry(ACL_USER, ACL_READ, uid), entry(ACL_GROUP_OBJ, 0),
           entry(ACL_MASK, ACL_READ), entry(ACL_OTHER, 0)}};
}

Error system_error(const std::string& what) {
  return Error(what + ": " + std::generic_category().message(errno));
}

struct Trace {
  fs::path path;
  fs::file_time_type written;
  std::uint64_t size = 0;
};

/// The newest first.
std::vector<Trace> traces_in(const std::string& folder) {
  std::vector<Trace> traces;
  std::error_code end;
  for (fs::directory_iterator each(folder, end); !end && each != fs::directory_iterator();
       each.increment(end)) {
    const std::string name = each->path().filename().string();
    if (!name.starts_with("gpumeter_") || !name.ends_with(".json")) continue;
    std::error_code error;
    const Trace trace{each->path(), each->last_write_time(error), each->file_size(error)};
    if (!error) traces.push_back(trace);
  }
  std::ranges::sort(traces, std::greater<>(), &Trace::written);
  return traces;
}

}  // namespace

Result<Descriptor> create(const TraceFile& file) {
  constexpr mode_t kOwnOnly = 0600;
  Descriptor out(::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnOnly));
  if (!out) return system_error(file.path);
  if (geteuid() == 0) {
    if (fchown(out.number(), file.reader, static_cast<gid_t>(-1)) != 0) return system_error(file.path);
  } else if (geteuid() != file.reader) {
    const AccessList list = readable_by(file.reader);
    [[maybe_unused]] const int ignored =
        fsetxattr(out.number(), "system.posix_acl_access", &list, sizeof list, 0);
  }
  return out;
}

Result<Done> make_room(const std::string& folder, std::uint64_t most) {
  std::error_code error;
  if (fs::create_directories(folder, error)) {
    using enum fs::perms;  // the umask of the service is 0077
    fs::permissions(folder, owner_all | group_read | group_exec | others_read | others_exec, error);
  }
  if (error) return Error(folder + ": " + error.message());
  std::uint64_t bytes = 0;
  for (const Trace& trace : traces_in(folder)) {
    bytes += trace.size;
    if (bytes > most) fs::remove(trace.path, error);
  }
  return Done{};
}

}  // namespace gpumeter

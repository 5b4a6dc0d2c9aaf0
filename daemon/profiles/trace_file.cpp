#include "daemon/profiles/trace_file.hpp"

#include <endian.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/profiles/asking.hpp"

namespace gpumeter {
namespace {

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
  std::string name;
  timespec written{};
  std::uint64_t size = 0;
};

/// The newest first.
std::vector<Trace> traces_in(const Folder& folder) {
  constexpr std::size_t kMostFiles = 65536;
  std::vector<Trace> traces;
  for (const std::string& name : folder.names(kMostFiles)) {
    const auto facts = profiles::is_trace_name(name) ? folder.facts(name) : std::nullopt;
    if (facts && S_ISREG(facts->st_mode)) {
      traces.push_back({name, facts->st_mtim, static_cast<std::uint64_t>(facts->st_size)});
    }
  }
  std::ranges::sort(traces, std::greater<>(),
                    [](const Trace& each) { return std::pair(each.written.tv_sec, each.written.tv_nsec); });
  return traces;
}

}  // namespace

Result<Descriptor> create(const Folder& folder, const std::string& name, const TraceFile& file) {
  constexpr mode_t kOwnOnly = 0600;
  Result<Descriptor> out = folder.create(name, kOwnOnly);
  if (!out || !file.reader) return out;
  if (geteuid() == 0) {
    if (fchown(out->number(), *file.reader, static_cast<gid_t>(-1)) != 0) return system_error(file.path);
  } else if (geteuid() != *file.reader) {
    const AccessList list = readable_by(*file.reader);
    [[maybe_unused]] const int ignored =
        fsetxattr(out->number(), "system.posix_acl_access", &list, sizeof list, 0);
  }
  return out;
}

Result<Done> make_room(const std::string& path, std::uint64_t most) {
  constexpr mode_t kListable = 0755;
  const Result<Folder> folder = Folder::make(path, kListable);
  if (!folder) return folder.error();
  std::uint64_t bytes = 0;
  for (const Trace& trace : traces_in(*folder)) {
    bytes += trace.size;
    if (bytes > most) {
      [[maybe_unused]] const Result<Done> ignored = folder->remove(trace.name);
    }
  }
  return Done{};
}

}  // namespace gpumeter

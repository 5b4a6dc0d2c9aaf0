#include "base/resident.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpumeter {
namespace {

// The dynamic linker relocates writable segments only, so all other pages are those of the file.
bool is_unchanged(const ElfW(Phdr) & segment) noexcept {
  return segment.p_type == PT_LOAD && (segment.p_flags & PF_W) == 0;
}

int unmap_object(dl_phdr_info* object, std::size_t, void*) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const ElfW(Phdr) & segment : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (!is_unchanged(segment)) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT(performance-no-int-to-ptr)
  }
  return 0;
}

}  // namespace

void unmap_code() noexcept { dl_iterate_phdr(unmap_object, nullptr); }

}  // namespace gpumeter

// A recording of a stranger, compressed or not: pages within the limits, or an error that names the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "collectors/pages/page.hpp"
#include "collectors/pages/replay.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  Descriptor file(memfd_create("recording", MFD_CLOEXEC));
  fuzz::expect(file && write(file.number(), data, size) == static_cast<ssize_t>(size));
  fuzz::expect(lseek(file.number(), 0, SEEK_SET) == 0);
  pages::Recording recording(std::move(file), "r");
  while (true) {
    const auto page = recording.next();
    if (!page) fuzz::expect(page.error().message().starts_with("r: byte "));
    if (!page || !*page) return 0;
    fuzz::expect((*page)->text.size() <= pages::kMostRecordedBytes);
    std::optional<pages::BadLine> wrong;
    pages::read_page((*page)->text, pages::kMostRecordedSeries, wrong);
  }
}

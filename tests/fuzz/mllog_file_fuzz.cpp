// An MLPerf log that a job writes in two pieces, the first of as many bytes as the first byte says. The lines
// are those of a log that is written at once.
#include <fstream>
#include <string>

#include "collectors/jobs/intake/mllog_file.hpp"
#include "tests/fuzz/folder.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::jobs {
namespace {

struct Lines {
  std::string text;
  std::uint64_t overlong = 0;

  void take(MllogFile& file) {
    while (const auto batch = file.read()) {
      fuzz::expect(batch->lines.empty() || batch->lines.ends_with('\n'));
      fuzz::expect(batch->sender.pid == -1);
      text += batch->lines;
      overlong += batch->overlong;
    }
  }
};

Lines in_two_pieces(const fuzz::Folder& folder, std::string_view bytes, std::size_t first) {
  folder.write("log", bytes.substr(0, first));
  MllogFile file(folder.path() + "/log", 1);
  Lines lines;
  lines.take(file);
  std::ofstream(folder.path() + "/log", std::ios::binary | std::ios::app) << bytes.substr(first);
  lines.take(file);
  fuzz::expect(file.trouble().empty());
  return lines;
}

}  // namespace
}  // namespace gpumeter::jobs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static const fuzz::Folder folder;
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  const jobs::Lines once = jobs::in_two_pieces(folder, bytes, 0);
  const jobs::Lines twice = jobs::in_two_pieces(folder, bytes, data[0] % size);
  fuzz::expect(once.text == twice.text && once.overlong == twice.overlong);
  return 0;
}

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>

#include "collectors/import/files.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/options.hpp"

namespace {

using namespace gpumeter;
using namespace gpumeter::import;

int fail(const std::string& place, const Error& error) {
  std::fprintf(stderr, "gpumeter-import: %s: %s\n", place.c_str(), error.message().c_str());
  return 1;
}

std::string host_name() {
  std::array<char, 256> name{};  // HOST_NAME_MAX is 64
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int run(const Options& options) {
  const Result<File> file = read_file(options.file);
  if (!file) return fail(options.file, file.error());
  const Context context{options.host.empty() ? host_name() : options.host};
  const Result<Sheet> sheet = parse_file(*options.format, file->text, context);
  if (!sheet) {  // FILE:LINE: REASON
    std::fprintf(stderr, "gpumeter-import: %s:%s\n", options.file.c_str(), sheet.error().message().c_str());
    return 1;
  }
  const auto parcels = parcels_of(*sheet, options.mapping, file->written.value_or(now()));
  if (!parcels) return fail(options.file, parcels.error());
  if (options.dry_run) {
    for (const Parcel& parcel : *parcels) std::fputs(parcel.lines.c_str(), stdout);
    return 0;
  }
  if (const Result<Done> sent = send_parcels(*parcels, options.socket); !sent) {
    return fail(options.socket, sent.error());
  }
  std::printf("results of %zu GPU(s) sent to %s\n", parcels->size(), options.socket.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = parse_options(argc, argv);
    if (const auto* exit = std::get_if<Exit>(&parsed)) {
      std::fputs(exit->text.c_str(), exit->code == 0 ? stdout : stderr);
      return exit->code;
    }
    return run(std::get<Options>(parsed));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "gpumeter-import: %s\n", problem.what());
    return 1;
  }
}

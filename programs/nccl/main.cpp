#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "programs/nccl/part.hpp"
#include "programs/nccl/settings.hpp"
#include "programs/service/service.hpp"

namespace {

using namespace gpumeter;
using namespace std::chrono_literals;

constexpr std::string_view kFiles = "--files=";
constexpr std::string_view kPages = "--pages=";

/// The values of --files and --pages, which a part does not get.
std::string files_program;                  // NOLINT(cert-err58-cpp)
std::string pages = "/run/gpumeter/pages";  // NOLINT(cert-err58-cpp)

std::vector<std::string> options_of_files(const PartContext& context) {
  const auto& settings = context.settings_of<nccl::Settings>();
  std::vector<std::string> words = {
      files_program, "--api-socket=" + context.paths.api, "--page=" + pages + "/nccl-files.prom",
      "--interval=" + std::to_string(std::clamp(context.interval / 1s, 1L, 60L))};
  if (!settings.inspector.folder.empty()) {
    words.push_back("--inspector=" + settings.inspector.folder);
    words.push_back("--inspector-interval=" + std::to_string(settings.inspector.interval / 1s));
  }
  for (const std::string& prefix : settings.flight_recorder) words.push_back("--flight-recorder=" + prefix);
  for (const std::string& user : settings.users) words.push_back("--user=" + user);
  return words;
}

/// Becomes the reader of files, with its settings; returns null if the configuration names no files. The
/// reader is a program in Python, which has no reader of gpumeter.yaml.
std::shared_ptr<Part> become_reader(const PartContext& context) {
  const auto& settings = context.settings_of<nccl::Settings>();
  if (settings.inspector.folder.empty() && settings.flight_recorder.empty()) return nullptr;
  std::vector<std::string> words = options_of_files(context);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);  // the service blocks signals, and a program inherits that
  execv(arguments.front(), arguments.data());
  context.log.error("cannot start the reader of files",
                    {{"program", files_program}, {"error", std::strerror(errno)}});
  context.log.flush(std::chrono::seconds(1));
  _exit(1);
}

constexpr PartEntry kReader = {.name = "nccl-files", .options = &nccl::kSection, .open = become_reader};

}  // namespace

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  for (const std::string_view argument : arguments) {
    if (argument.starts_with(kFiles)) files_program = argument.substr(kFiles.size());
    if (argument.starts_with(kPages)) pages = argument.substr(kPages.size());
  }
  std::erase_if(arguments, [](std::string_view argument) { return argument.starts_with(kFiles); });
  const service::Program program = {"gpumeter-nccl",
                                    "Asks the NCCL of jobs about their ranks, for gpumeter. With "
                                    "--files=PROGRAM, starts the reader of the files that NCCL writes.",
                                    files_program.empty() ? nccl::kPart : kReader};
  return service::run(program, static_cast<int>(arguments.size()), arguments.data());
}

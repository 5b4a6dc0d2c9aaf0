#include "collectors/import/options.hpp"

#include <CLI/CLI.hpp>

#include "base/text.hpp"
#include "build_info.hpp"
#include "collectors/import/formats/formats.hpp"

namespace gpumeter::import {
namespace {

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter-import: " + sentence + "\nTry 'gpumeter-import --help'.\n"};
}

std::string format_names() {
  std::string names;
  for (const Format& format : formats()) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

std::string footer() {
  std::string text = "\nFormats:\n";
  for (const Format& format : formats()) {
    std::string name(format.name);
    name.resize(22, ' ');
    text += "  " + name + std::string(format.what) + '\n';
  }
  return text;
}

/// The texts of the flags.
struct Texts {
  std::string format;
  std::string gpus;
  std::string uuids;
};

std::variant<Options, Exit> checked(Options options, const Texts& texts) {
  options.format = find_format(texts.format);
  if (options.format == nullptr) {
    return usage_error("FORMAT must be one of " + format_names() + ", not " + gpumeter::quoted(texts.format));
  }
  if (!texts.gpus.empty() && !texts.uuids.empty()) return usage_error("give either --gpu or --uuid");
  const bool is_by_uuid = !texts.uuids.empty();
  Result<Mapping> mapping = parse_mapping(is_by_uuid ? texts.uuids : texts.gpus, is_by_uuid ? "uuid" : "gpu");
  if (!mapping) return usage_error((is_by_uuid ? "--uuid: " : "--gpu: ") + mapping.error().message());
  options.mapping = *std::move(mapping);
  return options;
}

}  // namespace

std::variant<Options, Exit> parse_options(int argc, const char* const* argv) {
  CLI::App app("Sends the results of other benchmarks to gpumeter.", "gpumeter-import");
  Options options;
  Texts texts;
  options.socket = "/run/gpumeter/jobs.sock";
  app.set_help_flag("-h,--help", "Print this help");
  app.add_option("FORMAT", texts.format, "The program that wrote the file, see below")->type_name("");
  app.add_option("FILE", options.file, "What the program printed or wrote; - reads the standard input")
      ->type_name("");
  app.add_option("--gpu", texts.gpus,
                 "The GPUs of the file by gpumeter's index: 3, or 0=3,1=2 by their numbers")
      ->type_name("LIST");
  app.add_option("--uuid", texts.uuids, "The same by their uuids")->type_name("LIST");
  app.add_option("--host", options.host, "The machine whose ranks count (default: this one)")
      ->type_name("NAME");
  app.add_option("--jobs-socket", options.socket,
                 "The datagram socket of jobs (default /run/gpumeter/jobs.sock)")
      ->type_name("PATH");
  app.add_option("--socket", options.socket)->group("");  // its former name, which the help omits
  bool version = false;
  app.add_flag("--dry-run", options.dry_run, "Print the lines instead of sending them");
  app.add_flag("--version", version, "Print the version");
  app.footer(footer());
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  if (version) {
    return Exit{0, std::string("gpumeter-import, version ") + build::kVersion +
                       " (revision: " + build::kRevision + ")\n"};
  }
  if (texts.format.empty() || options.file.empty()) return usage_error("FORMAT and FILE are required");
  return checked(std::move(options), texts);
}

}  // namespace gpumeter::import

#include <zlib.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "base/folder.hpp"
#include "collectors/pages/replay.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

using std::chrono::steady_clock;

constexpr auto kEvery = std::chrono::seconds(1);
constexpr client::Limits kLimits = {std::chrono::seconds(2), std::chrono::seconds(5),
                                    pages::kMostRecordedBytes};

/// The new file. Each page is a gzip member of its own, and is in the file before the next one.
class Writer {
 public:
  static Result<Writer> create(const std::string& path) {
    const PathOfFile place(path);
    const Result<Folder> folder = Folder::open(place.folder);
    if (!folder) return folder.error();
    Result<Descriptor> file = folder->create(place.name, 0644);
    if (!file) return file.error();
    return Writer(file->release(), path);
  }

  Result<Done> add(const pages::RecordedPage& page) {
    const std::string text = pages::heading_of(page) + page.text;
    const auto size = static_cast<unsigned>(text.size());
    errno = 0;
    if (file_ && gzwrite(file_.get(), text.data(), size) == static_cast<int>(size) &&
        gzflush(file_.get(), Z_FINISH) == Z_OK)
      return Done{};
    return Error(path_ + ": " + std::strerror(errno == 0 ? ENOMEM : errno));
  }

 private:
  struct Close {
    void operator()(gzFile file) const noexcept { gzclose(file); }
  };
  Writer(int file, std::string path) : path_(std::move(path)), file_(gzdopen(file, "wb")) {}

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

/// Asks the daemon for its pages.
class Asker {
 public:
  Asker(client::Address address, std::string path)
      : client_(std::move(address), kLimits, "gpumeter-commands"), path_(std::move(path)) {}

  Result<pages::RecordedPage> ask() {
    Result<client::HttpClient::Answer> answer = client_.get(path_);
    if (!answer) return answer.error();
    if (answer->status == 401)
      return Error("the daemon requires another user (web.config_file): check --login-file");
    if (answer->status != 200)
      return Error("the daemon answers with status " + std::to_string(answer->status));
    return pages::RecordedPage{now(), std::move(answer->body)};
  }
  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(SystemClock().realtime()).count();
  }

 private:
  client::HttpClient client_;
  const std::string path_;
};

}  // namespace

Result<std::string> record(const RecordOptions& options, const config::Config& config, Signals& signals) {
  const Result<client::Address> address = options.daemon.address(config);
  if (!address) return address.error();
  Asker asker(*address, config.of<HttpSettings>().telemetry_path + "?detail=full");
  Result<pages::RecordedPage> page = asker.ask();
  if (!page) return page.error().with(address->text);
  Result<Writer> writer = Writer::create(options.file);
  if (!writer) return writer.error();
  const auto begun = steady_clock::now();
  std::size_t pages = 0;
  for (auto due = begun;; page = asker.ask()) {
    if (!page) std::fprintf(stderr, "gpumeter: %s\n", page.error().with(address->text).message().c_str());
    const Result<Done> written = writer->add(page ? *page : pages::RecordedPage{Asker::now(), ""});
    if (!written) return written.error();
    ++pages;
    due = std::max(due + kEvery, steady_clock::now());
    if (options.length && due - begun >= *options.length) break;
    const auto nap = std::chrono::ceil<std::chrono::milliseconds>(due - steady_clock::now());
    if (signals.wait(std::max(nap, std::chrono::milliseconds(0)))) break;
  }
  return options.file + ": " + std::to_string(pages) + " pages\n";
}

}  // namespace gpumeter

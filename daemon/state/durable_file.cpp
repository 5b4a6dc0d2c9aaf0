#include "daemon/state/durable_file.hpp"

#include "base/small_file.hpp"

namespace gpumeter {

Result<std::string> read_state_file(const std::string& path, std::size_t most) {
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  return folder->read(at.name, most);
}

Result<Done> replace_state_file(const std::string& folder, const std::string& name, const std::string& text,
                                Folder::Outlives event) {
  constexpr mode_t kOwnOnly = 0600;
  const Result<Folder> opened = Folder::make(folder, kStateFolderMode);
  if (!opened) return opened.error();
  return opened->replace(name, text, kOwnOnly, event);
}

void set_aside(const std::string& path) {
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (folder) {
    [[maybe_unused]] const Result<Done> ignored = folder->rename(at.name, at.name + ".bad");
  }
}

std::string machine_id_in(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const SmallFile file = read_small_file(path, kMost);  // root's, and a link on some systems
  const std::string id = file.error == 0 && file.is_whole ? file.text.substr(0, file.text.find('\n')) : "";
  constexpr std::size_t kDigits = 32;
  return id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : "";
}

}  // namespace gpumeter

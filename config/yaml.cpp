#include "config/yaml.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

namespace gpumeter::config {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// Rejects a terminal, a pipe and most devices. Reading them may block a start or a reload for ever, and a
/// reload could not read them a second time. /dev/null is the usual name of an empty file.
bool is_readable_again(const struct stat& status) {
  return S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3));
}

Error unreadable(int error) { return Error("cannot be read: " + std::generic_category().message(error)); }

}  // namespace

// Reads one byte more than the limit, which is enough to reject a larger file. O_NONBLOCK: a FIFO without a
// writer must not block the open().
Result<std::string> read_whole(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const std::unique_ptr<std::FILE, CloseFile> file(fd < 0 ? nullptr : fdopen(fd, "r"));
  struct stat status {};
  if (!file || fstat(fd, &status) != 0) return unreadable(errno);
  if (S_ISDIR(status.st_mode)) return unreadable(EISDIR);
  if (!is_readable_again(status)) return Error("is not a regular file");
  std::string text(kMaxFileBytes + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) return unreadable(errno);
  return text;
}

namespace {

/// Thrown for YAML that yaml-cpp accepts and a configuration does not; parse_yaml() catches it.
class Refused final : public YAML::ParserException {
  using YAML::ParserException::ParserException;
};

/// Builds the tree from yaml-cpp's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(checked(mark, "?", anchor, Node::Kind::null), mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused(mark, "an alias (*name) is not accepted; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = checked(mark, tag, anchor, Node::Kind::scalar);
    node.quoted = tag == "!";
    node.text = value;
    add(std::move(node), mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(checked(mark, tag, anchor, Node::Kind::sequence), mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(checked(mark, tag, anchor, Node::Kind::map), mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    std::optional<Node> key;  ///< a key that was read and has no value yet
  };

  /// yaml-cpp's tag is "?" or empty for a plain value and "!" for a quoted one. Any other tag is in the file.
  Node checked(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    if (anchor != YAML::NullAnchor) {
      throw Refused(mark, "an anchor (&name) is not accepted; write the value out");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused(mark, "a tag (" + tag + ") is not accepted");
    }
    if (++count_ > kMaxNodes) {
      throw Refused(mark, "more than " + std::to_string(kMaxNodes) + " values");
    }
    Node node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == Node::Kind::map && !open_.back().key;
  }

  void open(Node node, const YAML::Mark& mark) {
    if (expects_key()) throw Refused(mark, "a key must be plain text");
    if (open_.size() >= kMaxDepth) {
      throw Refused(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    open_.push_back({std::move(node), std::nullopt});
  }

  void close() {
    Node node = std::move(open_.back().node);
    open_.pop_back();
    attach(std::move(node));
  }

  void add(Node node, const YAML::Mark& mark) {
    if (!expects_key()) return attach(std::move(node));
    if (node.kind != Node::Kind::scalar) throw Refused(mark, "a key must be plain text");
    open_.back().key = std::move(node);
  }

  void attach(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.key) {
      node.key = std::move(parent.key->text);
      node.line = parent.key->line;
      parent.key.reset();
    }
    parent.node.children.push_back(std::move(node));
  }

  Node root_;
  std::vector<Open> open_;
  std::size_t count_ = 0;
};

/// Rejects control characters and the bytes that start a UTF-16 file.
bool is_text(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\n' || c == '\r' || c == '\t' || (byte >= 0x20 && byte < 0xfe);
}

/// Checks what yaml-cpp does not: it takes byte 4 as the end of the file, and reports a tab only as a missing
/// value.
std::optional<SyntaxError> refused_bytes(std::string_view text) {
  int line = 1;
  bool indentation = true;
  bool tab = false;
  for (const char c : text) {
    if (!is_text(c)) return SyntaxError{line, "a byte that is not text; the file must be UTF-8"};
    if (indentation && tab && c != '\t' && c != ' ' && c != '\n' && c != '\r' && c != '#') {
      return SyntaxError{line, "a tab in the indentation; YAML requires spaces"};
    }
    tab = (tab && indentation) || c == '\t';
    indentation = c == '\n' || (indentation && (c == ' ' || c == '\t'));
    if (c == '\n') {
      ++line;
      tab = false;
    }
  }
  return std::nullopt;
}

std::variant<Node, SyntaxError> parse_document(std::string_view text) {
  std::istringstream stream{std::string(text)};
  YAML::Parser parser(stream);
  TreeBuilder builder;
  parser.HandleNextDocument(builder);
  Node root = builder.take_root();
  TreeBuilder second;
  if (parser.HandleNextDocument(second)) {
    return SyntaxError{second.take_root().line,
                       "content after the end of the document; the file must have one document"};
  }
  return root;
}

}  // namespace

std::variant<Node, SyntaxError> parse_yaml(std::string_view text) {
  if (text.size() > kMaxFileBytes) return SyntaxError{0, "larger than 1 MiB"};
  if (auto refused = refused_bytes(text)) return *refused;
  try {
    return parse_document(text);
  } catch (const Refused& refused) {
    return SyntaxError{refused.mark.line + 1, refused.msg};
  } catch (const YAML::Exception& error) {
    return SyntaxError{error.mark.line + 1,
                       "not valid YAML: " + error.msg + "; check the indentation, colons and quotes"};
  } catch (const std::exception& error) {
    return SyntaxError{0, std::string("cannot be parsed: ") + error.what()};
  }
}

}  // namespace gpumeter::config

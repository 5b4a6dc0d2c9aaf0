#include "exporter/http/response.hpp"

#include <microhttpd.h>

#include <string>
#include <utility>

namespace gpumeter {
namespace {

/// A response whose bytes live as long as `owner`. The library destroys `owner` after the last connection.
template <class Owner>
MHD_Response* share(std::string_view bytes, Owner owner) {
  void* data = const_cast<char*>(bytes.data());  // the library only reads it
#if MHD_VERSION >= 0x00097302
  auto* kept = new Owner(std::move(owner));
  const auto drop = [](void* object) noexcept { delete static_cast<Owner*>(object); };
  MHD_Response* response =
      MHD_create_response_from_buffer_with_free_callback_cls(bytes.size(), data, drop, kept);
  if (response == nullptr) delete kept;
  return response;
#else
  return MHD_create_response_from_buffer(bytes.size(), data, MHD_RESPMEM_MUST_COPY);
#endif
}

MHD_Response* create(HttpResponse& message) {
  if (message.page != nullptr) return share(message.page->bytes(), message.page);
  if (message.bytes != nullptr) return share(*message.bytes, message.bytes);
  // The text moves to its final place before a view of it is taken, because a short text lies inside its
  // string object.
  auto body = std::make_shared<const std::string>(std::move(message.body));
  const std::string_view bytes = *body;
  return share(bytes, std::move(body));
}

/// An answer's own header has precedence, as in exporter-toolkit: the live page's policy is stricter than one
/// for all pages.
void add_configured_headers(MHD_Response* response, const WebGeneration* access) {
  if (access == nullptr) return;
  for (const auto& [name, value] : access->settings.headers) {
    if (MHD_get_response_header(response, name.c_str()) != nullptr) continue;
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
}

}  // namespace

MhdResponsePtr make_response(HttpResponse message) {
  MHD_Response* created = create(message);
  if (created == nullptr) return nullptr;
  const Encoding encoding = message.page == nullptr ? message.encoding : message.page->encoding();
  MhdResponsePtr response(created, MHD_destroy_response);
  MHD_add_response_header(created, "Content-Type", std::string(message.content_type).c_str());
  for (const HttpHeader& header : message.headers) {
    MHD_add_response_header(created, header.name, header.value);
  }
  if (encoding == Encoding::gzip) MHD_add_response_header(created, "Content-Encoding", "gzip");
  if (!message.etag.empty()) MHD_add_response_header(created, "ETag", message.etag.c_str());
  add_configured_headers(created, message.access.get());
  if (message.close) MHD_add_response_header(created, "Connection", "close");
  return response;
}

MhdResponsePtr ResponseCache::response(HttpResponse message) {
  if (!message.is_current) return make_response(std::move(message));
  if (MhdResponsePtr found = find(message)) return found;
  MhdResponsePtr made = make_response(message);
  keep({message.content_type, std::move(message.page), std::move(message.access), made});
  return made;
}

MhdResponsePtr ResponseCache::find(const HttpResponse& message) const {
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.page == message.page && entry.content_type == message.content_type &&
        entry.access == message.access) {
      return entry.response;
    }
  }
  return nullptr;
}

void ResponseCache::keep(Entry entry) {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const Entry& old) {
    const bool is_old = old.page != entry.page || old.access != entry.access;
    return is_old && old.page->format() == entry.page->format() &&
           old.page->encoding() == entry.page->encoding();
  });
  entries_.push_back(std::move(entry));
}

}  // namespace gpumeter

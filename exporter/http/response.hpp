#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "exporter/http/message.hpp"

struct MHD_Response;

namespace gpumeter {

/// libmicrohttpd's form of a response. It may be queued on many connections at the same time, also after
/// this pointer is gone: the library counts its own references.
using MhdResponsePtr = std::shared_ptr<MHD_Response>;

/// Null where memory is short. The bytes of a page are sent from where they lie, never copied.
MhdResponsePtr make_response(HttpResponse message);

/// The responses of the current pages, so that a ready page costs a scrape nothing but its sending. One
/// for each Content-Type and encoding that was asked for; the first with a new page replaces those of the
/// old one. Any thread.
class ResponseCache {
 public:
  MhdResponsePtr response(HttpResponse message);

 private:
  struct Entry {
    std::string_view content_type;
    PagePtr page;
    MhdResponsePtr response;
  };

  MhdResponsePtr find(const HttpResponse& message) const;
  void keep(Entry entry);

  mutable Mutex mutex_;
  std::vector<Entry> entries_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter

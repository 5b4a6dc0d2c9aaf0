#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <memory>
#include <type_traits>

#include "base/result.hpp"

/// Owners of GnuTLS' objects, which are pointers with a function that frees each.
namespace gpumeter {

template <auto Free>
struct GnutlsFree {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
template <class Handle, auto Free>
using GnutlsPtr = std::unique_ptr<std::remove_pointer_t<Handle>, GnutlsFree<Free>>;

using GnutlsSession = GnutlsPtr<gnutls_session_t, gnutls_deinit>;
using GnutlsPriority = GnutlsPtr<gnutls_priority_t, gnutls_priority_deinit>;
using GnutlsCertificate = GnutlsPtr<gnutls_x509_crt_t, gnutls_x509_crt_deinit>;
using GnutlsCredentials = GnutlsPtr<gnutls_certificate_credentials_t, gnutls_certificate_free_credentials>;

inline Error gnutls_error(int code) { return Error(gnutls_strerror(code)); }

}  // namespace gpumeter

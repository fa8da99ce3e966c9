// SPDX-License-Identifier: Apache-2.0
// Private to transport: one attempt at one GET, as libcurl sees it.
#pragma once
#include <curl/curl.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "preprocess/transport/http_client.hpp"

namespace convoy::preparation {

/// libcurl's own set-up, once per process.
void require_curl();

struct HttpRequest {
  std::string url;
  Index begin = 0, end = -1;  ///< part of the object; a Range header where they say less than all
  bool head = false;
};

/// Lives in a multi handle from its making to its end. Received bytes wait in `buffer`; libcurl is paused while there
/// are many.
class HttpTransfer {
 public:
  HttpTransfer(CURLM* multi, const HttpRequest& request, const S3Identity& identity, double timeout_seconds);
  ~HttpTransfer();
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  /// Takes up to `bytes` of what has arrived.
  std::size_t take(std::uint8_t* to, std::size_t bytes);
  bool headers_arrived() const { return headers_done_; }
  /// Bytes of the body so far.
  Index received() const { return received_; }

  void finish(CURLcode result);
  bool finished() const { return finished_; }
  CURLcode result() const { return result_; }
  /// libcurl's reason of a failed transfer.
  std::string reason() const;
  /// Status and headers; after the end also the body of a refusal.
  const HttpAnswer& answer() const { return answer_; }

 private:
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  void take_header(const std::string& line);

  CURLM* multi_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  HttpRequest request_;
  std::vector<std::uint8_t> buffer_;
  std::size_t used_ = 0;
  Index received_ = 0;
  bool paused_ = false, headers_done_ = false, finished_ = false;
  CURLcode result_ = CURLE_OK;
  std::array<char, CURL_ERROR_SIZE> reason_{};
  HttpAnswer answer_;
  std::string modified_;
};

}  // namespace convoy::preparation

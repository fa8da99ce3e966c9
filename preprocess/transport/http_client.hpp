// SPDX-License-Identifier: Apache-2.0
// GET over libcurl: many transfers at once on one thread, resumed where they broke. Errors are Error(data) that name
// the address.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "preprocess/transport/store.hpp"

namespace convoy::preparation {

/// What signs requests to S3 (AWS Signature Version 4); empty key: nothing is signed.
struct S3Identity {
  std::string key, secret, token, region;
};

/// The headers that matter.
struct HttpAnswer {
  long status = 0;
  Index content_bytes = -1;  ///< length of this answer's body; -1: not told
  Index object_bytes = -1;   ///< length of the whole object
  std::string version;       ///< ETag, else Last-Modified
  std::string body;          ///< kept for small requests and for refusals
};

/// One thread's connections. Streams must end before it does.
class HttpClient {
 public:
  HttpClient(TransferSpec spec, S3Identity identity);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// A whole small answer; retried. Throws where the status isn't 200.
  HttpAnswer get(const std::string& url);
  /// Only headers.
  HttpAnswer head(const std::string& url);
  /// Begins at once; moves whenever any stream of this client is read.
  std::unique_ptr<ByteStream> stream(const std::string& url, const ByteRange& range);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// `HTTP 403 Forbidden: SignatureDoesNotMatch, The request signature ...`: what a refusal says, S3's answers included.
std::string describe_refusal(const HttpAnswer& answer);

}  // namespace convoy::preparation

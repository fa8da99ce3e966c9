// SPDX-License-Identifier: Apache-2.0
#include "preprocess/transport/http_client.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/stop.hpp"
#include "preprocess/transport/http_transfer.hpp"
#include "preprocess/transport/xml.hpp"

namespace convoy::preparation {
namespace {

constexpr int longest_nap_ms = 50;
constexpr double longest_backoff_seconds = 30;

bool worth_retrying(CURLcode result) {
  switch (result) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_OUT_OF_MEMORY:
      return false;
    default:
      return true;
  }
}

bool worth_retrying(long status) { return status == 408 || status == 425 || status == 429 || status >= 500; }

}  // namespace

struct HttpClient::State {
  TransferSpec spec;
  S3Identity identity;
  CURLM* multi = nullptr;

  State(TransferSpec s, S3Identity i) : spec(std::move(s)), identity(std::move(i)) {
    require_curl();
    multi = curl_multi_init();
    if (multi == nullptr) fail(Exit::device, "cannot start transfers (libcurl gave no handle)");
  }
  ~State() { curl_multi_cleanup(multi); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::unique_ptr<HttpTransfer> begin(const HttpRequest& request) {
    return std::make_unique<HttpTransfer>(multi, request, identity, spec.timeout_seconds);
  }

  /// Moves what can move, waits for more, at most for a nap. Returns the seconds waited.
  double pump() {
    if (spec.cancel != nullptr && spec.cancel->load()) fail(Exit::stopped, "reading was stopped");
    leave_if_stopped("waiting for a server");
    int running = 0;
    curl_multi_perform(multi, &running);
    bool any = false;
    for (int left = 0; const CURLMsg* message = curl_multi_info_read(multi, &left);) {
      if (message->msg != CURLMSG_DONE) continue;
      HttpTransfer* transfer = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
      transfer->finish(message->data.result);
      any = true;
    }
    if (any) return 0;
    const auto before = real_clock().now();
    curl_multi_poll(multi, nullptr, 0, longest_nap_ms, nullptr);
    return seconds_since(before);
  }

  void pause(double seconds) {
    const auto end = real_clock().now() + std::chrono::duration<double>(seconds);
    while (real_clock().now() < end) {
      // Without transfers poll() returns at once.
      if (pump() < 1e-3) curl_multi_wait(multi, nullptr, 0, longest_nap_ms, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

namespace {

/// The attempts at one object: why the last one failed, whether there is another.
class Attempts {
 public:
  Attempts(HttpClient::State& client, std::string url) : client_(client), url_(std::move(url)) {}

  void progressed() { failures_ = 0; }

  /// Waits before the next attempt, or throws the reason.
  void failed(const std::string& reason, Index position, bool retry) {
    ++failures_;
    if (!retry || failures_ > client_.spec.retries) {
      fail(Exit::data, "cannot read '{}' ({}{}); {}", url_, reason,
           failures_ > 1 ? fmt::format(", at byte {} after {} attempts", position, failures_) : "",
           retry ? "try again later to continue where it was" : "check the address and the credentials");
    }
    const double seconds =
        std::min(client_.spec.backoff_seconds * std::pow(2.0, failures_ - 1), longest_backoff_seconds);
    log::warn("'{}': {} at byte {}; trying again in {:.1f} s", url_, reason, position, seconds);
    client_.pause(seconds);
  }

  void failed(const HttpTransfer& transfer, Index position) {
    if (transfer.result() != CURLE_OK && transfer.answer().status < 400) {
      failed(transfer.reason(), position, worth_retrying(transfer.result()));
    } else {
      failed(describe_refusal(transfer.answer()), position, worth_retrying(transfer.answer().status));
    }
  }

 private:
  HttpClient::State& client_;
  std::string url_;
  int failures_ = 0;
};

class HttpStream final : public ByteStream {
 public:
  HttpStream(HttpClient::State& client, std::string url, const ByteRange& range)
      : client_(client), url_(std::move(url)), attempts_(client, url_), position_(range.begin), end_(range.end) {
    begin();
  }

  std::size_t read(std::uint8_t* to, std::size_t bytes) override {
    while (position_ != end_) {
      if (transfer_ == nullptr) begin();
      if (transfer_->headers_arrived()) check_headers();
      discard();
      const std::size_t wanted =
          end_ < 0 ? bytes : static_cast<std::size_t>(std::min(static_cast<Index>(bytes), end_ - position_));
      if (const std::size_t got = discard_ > 0 ? 0 : transfer_->take(to, wanted); got > 0) {
        position_ += static_cast<Index>(got);
        attempts_.progressed();
        waited_ = 0;
        return got;
      }
      if (transfer_->finished()) {
        settle();
      } else {
        wait();
      }
    }
    return 0;
  }

  void skip(Index bytes) override {
    // A short way is read faster than a new request is answered.
    constexpr Index short_way = Index{1} << 18;
    if (end_ >= 0 && bytes > end_ - position_) {
      fail(Exit::data, "'{}' is truncated (it ends at byte {}, {} more expected)", url_, end_,
           bytes - (end_ - position_));
    }
    if (bytes > short_way) {
      transfer_.reset();
      position_ += bytes;
      return;
    }
    std::uint8_t rest[4096];
    while (bytes > 0) {
      const std::size_t got = read(rest, static_cast<std::size_t>(std::min<Index>(bytes, sizeof rest)));
      if (got == 0)
        fail(Exit::data, "'{}' is truncated (it ends at byte {}, {} more expected)", url_, position_, bytes);
      bytes -= static_cast<Index>(got);
    }
  }

 private:
  void begin() {
    transfer_ = client_.begin({url_, position_, end_});
    checked_ = false;
    discard_ = 0;
    waited_ = 0;
  }

  void check_headers() {
    const HttpAnswer& answer = transfer_->answer();
    if (checked_ || (answer.status != 200 && answer.status != 206)) return;
    checked_ = true;
    if (version_.empty()) version_ = answer.version;
    if (answer.version != version_) {
      fail(Exit::data, "'{}' changed while it was read (version {}, before {}); start again", url_, answer.version,
           version_);
    }
    if (answer.object_bytes >= 0) object_bytes_ = answer.object_bytes;
    if (object_bytes_ >= 0 && end_ > object_bytes_) {
      fail(Exit::data, "'{}' is truncated ({} bytes, {} expected); fetch it again", url_, object_bytes_, end_);
    }
    // A server without ranges sends all from the first byte on.
    if (answer.status == 200) discard_ = position_;
  }

  void discard() {
    std::uint8_t rest[16384];
    while (discard_ > 0) {
      const std::size_t got = transfer_->take(rest, static_cast<std::size_t>(std::min<Index>(discard_, sizeof rest)));
      if (got == 0) return;
      discard_ -= static_cast<Index>(got);
      waited_ = 0;
    }
  }

  /// The transfer has ended: all is here, or there is another attempt, or an error.
  void settle() {
    const HttpAnswer& answer = transfer_->answer();
    const bool past_the_end = answer.status == 416 && position_ > 0;
    if (transfer_->result() == CURLE_OK && (answer.status == 200 || answer.status == 206) && discard_ == 0) {
      const Index expected = end_ >= 0 ? end_ : object_bytes_;
      if (expected < 0 || position_ == expected) {
        end_ = position_;
        return;
      }
      attempts_.failed(fmt::format("the transfer ended early, {} bytes expected", expected), position_, true);
    } else if (past_the_end && object_bytes_ < 0 && end_ < 0) {
      fail(Exit::data, "'{}' is truncated (it ends before byte {}); fetch it again", url_, position_);
    } else {
      attempts_.failed(*transfer_, position_);
    }
    transfer_.reset();
  }

  void wait() {
    const Index before = transfer_->received();
    waited_ += client_.pump();
    if (transfer_->received() > before || transfer_->finished()) waited_ = 0;
    if (waited_ < client_.spec.timeout_seconds) return;
    transfer_.reset();
    attempts_.failed(fmt::format("no byte for {:g} s", client_.spec.timeout_seconds), position_, true);
  }

  HttpClient::State& client_;
  std::string url_;
  Attempts attempts_;
  Index position_, end_, object_bytes_ = -1, discard_ = 0;
  std::string version_;
  bool checked_ = false;
  double waited_ = 0;
  std::unique_ptr<HttpTransfer> transfer_;
};

}  // namespace

HttpClient::HttpClient(TransferSpec spec, S3Identity identity)
    : state_(std::make_unique<State>(std::move(spec), std::move(identity))) {}
HttpClient::~HttpClient() = default;

namespace {

HttpAnswer fetch(HttpClient::State& client, const HttpRequest& request) {
  constexpr std::size_t longest_body = std::size_t{1} << 30;
  for (Attempts attempts(client, request.url);;) {
    const auto transfer = client.begin(request);
    std::string body;
    std::uint8_t piece[16384];
    double waited = 0;
    const auto take_all = [&] {
      for (std::size_t got = 0; (got = transfer->take(piece, sizeof piece)) > 0; waited = 0) {
        body.append(reinterpret_cast<const char*>(piece), got);
      }
    };
    while (!transfer->finished() && waited < client.spec.timeout_seconds && body.size() < longest_body) {
      waited += client.pump();
      take_all();
    }
    take_all();
    if (!transfer->finished()) {
      attempts.failed(body.size() < longest_body ? fmt::format("no byte for {:g} s", client.spec.timeout_seconds)
                                                 : "more than 1 GiB",
                      0, body.size() < longest_body);
      continue;
    }
    if (transfer->result() != CURLE_OK || transfer->answer().status != 200) {
      attempts.failed(*transfer, static_cast<Index>(body.size()));
      continue;
    }
    HttpAnswer answer = transfer->answer();
    answer.body = std::move(body);
    return answer;
  }
}

}  // namespace

HttpAnswer HttpClient::get(const std::string& url) { return fetch(*state_, {url, 0, -1}); }
HttpAnswer HttpClient::head(const std::string& url) { return fetch(*state_, {url, 0, -1, true}); }

std::unique_ptr<ByteStream> HttpClient::stream(const std::string& url, const ByteRange& range) {
  return std::make_unique<HttpStream>(*state_, url, range);
}

std::string describe_refusal(const HttpAnswer& answer) {
  std::string text = fmt::format("HTTP {}", answer.status);
  const std::string code = xml_text(answer.body, "Code"), message = xml_text(answer.body, "Message");
  if (!code.empty()) text += fmt::format(", {}{}{}", code, message.empty() ? "" : ": ", message);
  if (code.empty() && answer.status == 404) text += ", not found";
  if (code.empty() && answer.status == 403) text += ", forbidden";
  return text;
}

}  // namespace convoy::preparation

// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/download.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

namespace convoy::cuda {
namespace {
constexpr Index piece_bytes = 4 << 20;
}

PagedDownload::PagedDownload(Queue& queue)
    : queue_(queue), buffer_(queue.allocate_host(piece_bytes, "the buffer for downloads")) {}

Event PagedDownload::start(void* to, const void* from, Index bytes, Event after) {
  while (!advance({own_bit | current_})) std::this_thread::yield();
  to_ = static_cast<std::byte*>(to);
  from_ = static_cast<const std::byte*>(from);
  left_ = bytes;
  ++current_;
  queue_.follow(Stream::communication, after);
  next_piece();
  return {own_bit | current_};
}

void PagedDownload::next_piece() {
  piece_ = std::min(left_, piece_bytes);
  queue_.to_host(buffer_, from_, piece_, Stream::communication);
  piece_done_ = queue_.record(Stream::communication);
}

bool PagedDownload::advance(Event event) {
  if (event.id != (own_bit | current_)) return true;  // an earlier one
  if (left_ == 0) return true;
  if (!queue_.done(piece_done_)) return false;
  std::memcpy(to_, buffer_, static_cast<std::size_t>(piece_));
  to_ += piece_;
  from_ += piece_;
  left_ -= piece_;
  if (left_ == 0) return true;
  next_piece();
  return false;
}

}  // namespace convoy::cuda

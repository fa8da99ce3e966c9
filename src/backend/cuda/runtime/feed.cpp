// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/runtime/feed.hpp"

#include <cmath>
#include <cstring>

#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

constexpr Index rows_offset = 64;
static_assert(sizeof(FeedNumbers) <= rows_offset);

}  // namespace

SampleRow row_of(const SampleSpec& sample) {
  SampleRow row;
  row.sample = sample.sample;
  row.position = sample.position;
  row.partner = static_cast<std::int32_t>(sample.partner);
  row.a = sample.a;
  row.b = sample.b;
  row.lambda = sample.lambda;
  row.y = sample.y;
  row.x = sample.x;
  row.erase_y = sample.erase_y;
  row.erase_x = sample.erase_x;
  row.erase_h = sample.erase_h;
  row.erase_w = sample.erase_w;
  row.mix_y = sample.mix_y;
  row.mix_x = sample.mix_x;
  row.mix_h = sample.mix_h;
  row.mix_w = sample.mix_w;
  row.flip = sample.flip;
  row.vertical_flip = sample.vertical_flip;
  return row;
}

Index Feed::device_bytes() const { return rows_offset + spec_.samples * static_cast<Index>(sizeof(SampleRow)); }

void Feed::bind(Queue& queue, std::byte* memory) {
  queue_ = &queue;
  memory_ = memory;
  ring_.emplace(queue, memory, device_bytes(), "the numbers of batches");
}

void Feed::send(const Batch& batch, const std::uint8_t* resident) {
  require(ring_.has_value(), "a program is fed before it is bound");
  require(static_cast<Index>(batch.samples.size()) == spec_.samples, "a batch of another size than compiled for");
  FeedNumbers numbers;
  numbers.valid = batch.valid_count;
  numbers.replica = batch.replica;
  numbers.scale = batch.scale;
  numbers.weight = static_cast<float>(static_cast<double>(batch.valid_count) * static_cast<double>(batch.scale));
  numbers.shared = batch.norm_scale > 0 ? static_cast<double>(std::llround(1 / static_cast<double>(batch.norm_scale)))
                                        : static_cast<double>(spec_.samples);
  numbers.images = batch.images != nullptr ? upload_rows(batch.images) : resident;
  require(numbers.images != nullptr, "a batch without images, and no resident set");
  std::byte* const slot = ring_->begin();
  std::memcpy(slot, &numbers, sizeof numbers);
  auto* const rows = reinterpret_cast<SampleRow*>(slot + rows_offset);
  for (std::size_t i = 0; i < batch.samples.size(); ++i) rows[i] = row_of(batch.samples[i]);
  ring_->post();
  queue_->deliver();
  // The next upload waits for this event. So it also waits until the kernel has fetched these numbers, which take the
  // same way to the device.
  if (batch.images != nullptr) before_last_ = queue_->record();
}

const std::uint8_t* Feed::upload_rows(const std::uint8_t* images) {
  // What read the rows before the last was queued when the last ones were sent.
  const Event reusable = before_last_;
  const Index bytes = spec_.samples * spec_.image_bytes;
  Rows& rows = image_rows_[turn_ % 2];
  ++turn_;
  if (rows.device == nullptr) {
    for (Rows& each : image_rows_) each.device = queue_->allocate(bytes, "a batch of images");
    queue_->follow(Stream::upload, queue_->record());  // they were cleared
  }
  const void* from = images;
  if (!queue_->is_pinned(images, bytes)) {
    if (rows.pinned == nullptr) rows.pinned = queue_->allocate_host(bytes, "a batch of images");
    queue_->wait(rows.uploaded);
    std::memcpy(rows.pinned, images, static_cast<std::size_t>(bytes));
    from = rows.pinned;
  } else {
    queue_->wait(queue_->last_rows());  // whoever filled them may overwrite the batch before this one from now on
  }
  if (rows.uploaded.id != 0) queue_->follow(Stream::upload, reusable);
  queue_->to_device(rows.device, from, bytes, Stream::upload);
  rows.uploaded = queue_->record(Stream::upload);
  queue_->set_last_rows(rows.uploaded);
  queue_->follow(Stream::compute, rows.uploaded);
  return reinterpret_cast<const std::uint8_t*>(rows.device);
}

const FeedNumbers* Feed::numbers() const { return reinterpret_cast<const FeedNumbers*>(memory_); }
const SampleRow* Feed::rows() const { return reinterpret_cast<const SampleRow*>(memory_ + rows_offset); }

}  // namespace convoy::cuda

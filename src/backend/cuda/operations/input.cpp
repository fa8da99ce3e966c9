// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/operations/input.hpp"

#include <algorithm>

#include "backend/cuda/operations/operations.hpp"
#include "backend/cuda/runtime/check.hpp"
#include "core/errors.hpp"

namespace convoy::cuda {
namespace {

/// The most blocks of a grid in its second direction, which images lie along.
constexpr Index most_samples = 65535;

InputStage::Normalise normalise_of(InputSpec::Normalise normalise) {
  switch (normalise) {
    case InputSpec::Normalise::channel:
      return InputStage::Normalise::channel;
    case InputSpec::Normalise::mean_image:
      return InputStage::Normalise::mean_image;
    case InputSpec::Normalise::per_image:
      return InputStage::Normalise::per_image;
  }
  return InputStage::Normalise::channel;
}

}  // namespace

void forward(ForwardPass& pass, int id, const Input&) {
  PlanBuilder& builder = pass.builder;
  const Layout& layout = builder.value(id).layout;
  const InputSpec& source = builder.compile().input;
  if (layout.c > 8 || source.channels > 4)
    fail(Exit::device, "images of {} channels are not possible on CUDA (it takes 1 to 4)", source.channels);
  if (builder.samples() > most_samples)
    fail(Exit::device,
         "batches of {} images are not possible on CUDA ({} at most); lower --batch-size or --eval-batch-size",
         builder.samples(), most_samples);
  InputStage stage{.storage = builder.storage(),
                   .normalise = normalise_of(source.normalise),
                   .padding = source.padding,
                   .samples = static_cast<int>(builder.samples()),
                   .source_height = static_cast<int>(source.height),
                   .source_width = static_cast<int>(source.width),
                   .height = static_cast<int>(layout.h),
                   .width = static_cast<int>(layout.w),
                   .channels = static_cast<int>(source.channels),
                   .stored_channels = static_cast<int>(layout.c)};
  std::copy(source.mean.begin(), source.mean.end(), stage.mean);
  std::copy(source.std.begin(), source.std.end(), stage.std);
  const BufferRef x = pass.make(id);
  const BufferRef moments =
      stage.normalise == InputStage::Normalise::per_image ? builder.add_floats(2 * builder.samples()) : BufferRef{};
  builder
      .add_step("input", {builder.value(id).node}, {}, {x, moments},
                [=](const LaunchContext& launch) {
                  InputStage now = stage;
                  now.mean_image = launch.mean_image;
                  now.rows = launch.rows;
                  now.feed = launch.feed;
                  now.moments = launch.floats(moments);
                  now.x = launch.at(x);
                  check(make_input(now, launch.stream), "the input stage");
                })
      .launches = stage.normalise == InputStage::Normalise::per_image ? 2 : 1;
  if (pass.needs_statistics(id)) add_statistics(pass, id);
}

}  // namespace convoy::cuda

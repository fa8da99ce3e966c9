// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/operations/input.hpp"

#include <algorithm>
#include <cmath>

#include "backend/cpu/operation.hpp"
#include "backend/cpu/operations/conversion.hpp"
#include "backend/cpu/step_builder.hpp"
#include "core/errors.hpp"

namespace convoy::cpu {
namespace {

/// Pixels [begin, end) of an output line or column that lie inside of the source.
struct Inside {
  Index begin, end;
};

/// `first`: the source position of output 0.
Inside inside(Index first, Index size, Index source_size) {
  const Index begin = std::clamp<Index>(-first, 0, size);
  return {begin, std::clamp<Index>(source_size - first, begin, size)};
}

/// value = (pixel - subtract) * multiply for each channel; a mean image replaces subtract.
struct Normaliser {
  std::array<float, 4> subtract{}, multiply{}, padding{};
};

Normaliser by_channel(const InputSpec& spec) {
  Normaliser result;
  for (std::size_t c = 0; c < static_cast<std::size_t>(spec.channels); ++c) {
    result.multiply[c] = 1 / spec.std[c];
    if (spec.normalise != InputSpec::Normalise::channel) continue;
    result.subtract[c] = spec.mean[c];
    result.padding[c] = (0 - spec.mean[c]) * result.multiply[c];
  }
  return result;
}

/// Mean and standard deviation of the crop, padding included, from exact integer sums.
Normaliser by_image(const InputSpec& spec, const SampleSpec& sample, const std::uint8_t* image, Index height,
                    Index width) {
  const Inside rows = inside(sample.y, height, spec.height), columns = inside(sample.x, width, spec.width);
  std::uint64_t sum = 0, squares = 0;
  const auto add = [&](std::uint64_t pixel) {
    sum += pixel;
    squares += pixel * pixel;
  };
  if (spec.padding == Padding::constant) {
    for (Index p = rows.begin; p < rows.end; ++p) {
      const std::uint8_t* const line = image + ((sample.y + p) * spec.width + sample.x) * spec.channels;
      for (Index i = columns.begin * spec.channels; i < columns.end * spec.channels; ++i) add(line[i]);
    }
  } else {
    for (Index p = 0; p < height; ++p) {
      const std::uint8_t* const line = image + reflected<Index>(sample.y + p, spec.height) * spec.width * spec.channels;
      for (Index q = 0; q < width; ++q)
        for (Index c = 0; c < spec.channels; ++c)
          add(line[reflected<Index>(sample.x + q, spec.width) * spec.channels + c]);
    }
  }
  const auto count = static_cast<double>(height * width * spec.channels);
  const double mean = static_cast<double>(sum) / count;
  const double variance = std::max(0.0, static_cast<double>(squares) / count - mean * mean);
  const double deviation = std::max(std::sqrt(variance), 255 / std::sqrt(count));
  Normaliser result;
  result.subtract.fill(static_cast<float>(mean));
  result.multiply.fill(static_cast<float>(1 / deviation));
  result.padding.fill(static_cast<float>(-mean / deviation));
  return result;
}

enum class Store { assign, accumulate };

/// Output pixels.
struct Box {
  Inside rows, columns;
};

/// One sample's image inside of `box`, times `weight`, written to or added to x (c h w). Output column q shows the
/// window's column q, or its mirror, and rows likewise; erased pixels are 0, that is, left as they are when adding.
template <Store store>
void write_image(const InputSpec& spec, const Normaliser& normaliser, const SampleSpec& sample,
                 const std::uint8_t* image, Index height, Index width, const Box& box, float weight, float* x) {
  const auto put = [weight](float& to, float value) {
    if constexpr (store == Store::assign) {
      to = weight * value;
    } else {
      to += weight * value;
    }
  };
  const Inside rows = inside(sample.y, height, spec.height), columns = inside(sample.x, width, spec.width);
  const Index from = sample.flip != 0 ? width - columns.end : columns.begin;
  const Index to = sample.flip != 0 ? width - columns.begin : columns.end;
  // Source column of output column q: first + q * step.
  const Index step = sample.flip != 0 ? -1 : 1, first = sample.flip != 0 ? sample.x + width - 1 : sample.x;
  const bool mean_image = spec.normalise == InputSpec::Normalise::mean_image;
  const Index erase_end = std::min<Index>(sample.erase_y + sample.erase_h, height);
  const Index erase_from = std::clamp<Index>(sample.erase_x, 0, width);
  const Index erase_to = std::clamp<Index>(sample.erase_x + sample.erase_w, erase_from, width);
  for (Index c = 0; c < spec.channels; ++c) {
    const auto channel = static_cast<std::size_t>(c);
    const float subtract = normaliser.subtract[channel], multiply = normaliser.multiply[channel];
    const float padding = normaliser.padding[channel];
    for (Index p = box.rows.begin; p < box.rows.end; ++p) {
      float* const line = x + (c * height + p) * width;
      // Runs outside of the erased columns: all of the line where it isn't erased.
      const bool erased = p >= sample.erase_y && p < erase_end;
      const Index begin = box.columns.begin, end = box.columns.end;
      const Index cut = erased ? std::clamp(erase_from, begin, end) : end;
      const Index resume = erased ? std::clamp(erase_to, cut, end) : end;
      const bool reflects = spec.padding == Padding::reflect;
      const Index row = sample.vertical_flip != 0 ? height - 1 - p : p;  // of the window
      const bool padded = !reflects && (row < rows.begin || row >= rows.end);
      const auto run = [&](Index start, Index stop) {
        const Index left = padded ? stop : std::clamp(from, start, stop),
                    right = padded ? stop : std::clamp(to, left, stop);
        const Index shown = reflects ? reflected<Index>(sample.y + row, spec.height) : sample.y + row;
        const Index offset = shown * spec.width * spec.channels + c;
        const auto pad = [&](Index q) {
          if (!reflects) return put(line[q], padding);
          const Index at = offset + reflected<Index>(first + q * step, spec.width) * spec.channels;
          const float mean = mean_image ? spec.mean_image[static_cast<std::size_t>(at)] : subtract;
          put(line[q], (image[at] - mean) * multiply);
        };
        for (Index q = start; q < left; ++q) pad(q);
        if (left < right) {
          if (mean_image) {
            for (Index q = left; q < right; ++q) {
              const Index at = offset + (first + q * step) * spec.channels;
              put(line[q], (image[at] - spec.mean_image[static_cast<std::size_t>(at)]) * multiply);
            }
          } else {
            for (Index q = left; q < right; ++q) {
              put(line[q], (image[offset + (first + q * step) * spec.channels] - subtract) * multiply);
            }
          }
        }
        for (Index q = right; q < stop; ++q) pad(q);
      };
      run(begin, cut);
      if constexpr (store == Store::assign) std::fill(line + cut, line + resume, 0.0F);
      run(resume, end);
    }
  }
}

class InputStep final : public Step {
 public:
  InputStep(InputSpec input, Index height, Index width, Operand x)
      : input_(std::move(input)), height_(height), width_(width), x_(x) {}

  bool run(const Memory& memory, const Tile& tile) override {
    make_input(input_, memory.samples, memory.images, height_, width_, reinterpret_cast<float*>(x_.at(memory, tile)));
    return true;
  }

 private:
  const InputSpec input_;
  const Index height_, width_;
  const Operand x_;
};

class InputOperation final : public Operation {
 public:
  void reads(std::span<TensorKind>) const override {}
  TensorKind makes(std::span<const TensorKind>) const override { return TensorKind::image; }
  OperationTraits traits(const Node&) const override { return {.whole_batch = true}; }

  void compile(const Instruction& i, StepBuilder& steps) const override {
    const CompileSpec& spec = steps.parts().spec;
    const Operand x = steps.y(i);
    if (steps.plain(i.value)) {
      steps.add<InputStep>(spec.input, spec.height, spec.width, x);
      return;
    }
    const TensorLayout& layout = steps.layout(i.value);
    const Operand made = steps.in_shared(spec.samples * layout.channels * spec.height * spec.width * 4);
    steps.add<InputStep>(spec.input, spec.height, spec.width, made);
    add_reordering(layout, OrderTo::layout, made, x, steps);
  }
};

}  // namespace

template <>
const Operation& operation_for<Input>() {
  static const InputOperation operation;
  return operation;
}

void make_input(const InputSpec& spec, std::span<const SampleSpec> samples, const std::uint8_t* images, Index height,
                Index width, float* x) {
  require(spec.channels >= 1 && spec.channels <= 4, "images of more than 4 channels");
  const bool per_image = spec.normalise == InputSpec::Normalise::per_image;
  const Normaliser common = by_channel(spec);
  const Index image_bytes = spec.height * spec.width * spec.channels, floats = height * width * spec.channels;
  const Box everything{{0, height}, {0, width}};
#pragma omp parallel for schedule(static)
  for (Index i = 0; i < static_cast<Index>(samples.size()); ++i) {
    const auto add = [&]<Store store>(const SampleSpec& sample, const Box& box, float weight) {
      const std::uint8_t* const image = images + sample.sample * image_bytes;
      write_image<store>(spec, per_image ? by_image(spec, sample, image, height, width) : common, sample, image, height,
                         width, box, weight, x + i * floats);
    };
    const SampleSpec& sample = samples[static_cast<std::size_t>(i)];
    if (sample.partner < 0) {
      add.operator()<Store::assign>(sample, everything, 1);
      continue;
    }
    const SampleSpec& partner = samples[static_cast<std::size_t>(sample.partner)];
    if (sample.mix_h > 0) {
      const Box box{inside(-sample.mix_y, height, sample.mix_h), inside(-sample.mix_x, width, sample.mix_w)};
      add.operator()<Store::assign>(sample, everything, 1);
      add.operator()<Store::assign>(partner, box, 1);
    } else {
      add.operator()<Store::assign>(sample, everything, sample.lambda);
      add.operator()<Store::accumulate>(partner, everything, 1 - sample.lambda);
    }
  }
}

}  // namespace convoy::cpu

// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/geometry.hpp"

namespace convoy::cpu {

Geometry make_geometry(const Plan& plan, const Lowering& lowering, Index height, Index width, Layout layout,
                       Storage storage) {
  const auto shapes = infer_shapes(plan.graph, height, width);
  Geometry geometry{layout, storage, {}};
  std::vector<Shape> of_value;
  for (const Value& value : lowering.values) {
    Shape shape = shapes[static_cast<std::size_t>(value.node)];
    if (value.kind == ValueKind::convert) {
      shape = of_value[static_cast<std::size_t>(value.source)];
      if (value.form == Form::features) shape = {shape.count(), 1, 1};
    }
    of_value.push_back(shape);
    Field field{.channels = shape.c, .height = shape.h, .width = shape.w};
    if (value.form == Form::image && layout == Layout::blocked) {  // n c h w: only convolutions and conversions read it
      field.image = shape.count();
      field.block = lanes * field.pixels();
      field.pixel = 1;
    } else if (value.form == Form::spatial && layout == Layout::blocked) {
      field.storage = storage;
      field.pixel = lanes;
      field.block = lanes * field.pixels();
      field.image = field.block * field.blocks();
    } else {
      if (value.form != Form::features) field.storage = storage;
      field.pixel = field.channels;
      field.block = lanes;
      field.image = field.channels * field.pixels();
    }
    geometry.fields.push_back(field);
  }
  return geometry;
}

ConvolutionShape convolution_of(const Plan& plan, const Lowering& lowering, const Geometry& geometry, int id,
                                Index images) {
  const Value& value = lowering.values[static_cast<std::size_t>(id)];
  const Value& source = lowering.values[static_cast<std::size_t>(value.source)];
  const Field& x = geometry.fields[static_cast<std::size_t>(value.source)];
  const bool plain = geometry.plain(source.form);
  const auto& c = std::get<Convolution>(plan.graph.nodes[static_cast<std::size_t>(value.node)].attributes);
  return {.images = images,
          .in = c.in,
          .out = c.out,
          .height = x.height,
          .width = x.width,
          .kernel = c.kernel,
          .stride = c.stride,
          .pad = c.pad,
          .groups = c.groups,
          .bias = c.bias,
          .reads_plain = plain,
          .layout = geometry.layout,
          .storage = plain ? Storage::f32 : geometry.storage};
}

}  // namespace convoy::cpu

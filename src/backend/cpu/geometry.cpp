// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/geometry.hpp"

namespace convoy::cpu {

Geometry make_geometry(const Plan& plan, const Lowering& lowering, Index height, Index width, MemoryFormat format,
                       Storage storage) {
  const auto shapes = infer_shapes(plan.graph, height, width);
  Geometry geometry{format, storage, {}};
  std::vector<Shape> of_value;
  for (const Value& value : lowering.values) {
    Shape shape = shapes[static_cast<std::size_t>(value.node)];
    const TensorKind kind = kind_of(value);
    if (value.kind == ValueKind::conversion) {
      shape = of_value[static_cast<std::size_t>(value.sources[0])];
      if (kind == TensorKind::features) shape = {shape.count(), 1, 1};
    }
    of_value.push_back(shape);
    TensorLayout layout{.channels = shape.c, .height = shape.h, .width = shape.w};
    if (kind == TensorKind::image &&
        format == MemoryFormat::blocked) {  // n c h w: only convolutions and conversions read it
      layout.image = shape.count();
      layout.block = lanes * layout.pixels();
      layout.pixel = 1;
    } else if (kind == TensorKind::spatial && format == MemoryFormat::blocked) {
      layout.storage = storage;
      layout.pixel = lanes;
      layout.block = lanes * layout.pixels();
      layout.image = layout.block * layout.blocks();
    } else {
      if (kind != TensorKind::features) layout.storage = storage;
      layout.pixel = layout.channels;
      layout.block = lanes;
      layout.image = layout.channels * layout.pixels();
    }
    geometry.layouts.push_back(layout);
  }
  return geometry;
}

}  // namespace convoy::cpu

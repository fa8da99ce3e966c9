// SPDX-License-Identifier: Apache-2.0
// The one place where oneDNN 2 and 3 differ for us: how primitive descriptors are made, and what 3 no longer has.
#pragma once
#include <oneapi/dnnl/dnnl_version.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace convoy::cpu::onednn {

struct ConvolutionDescriptors {
  dnnl::memory::desc source, weights, bias, result;  ///< bias: zero dimensions where there is none
  dnnl::memory::dims strides, padding;
};

/// Winograd's is ours: up to 2.7 the library has kernels for AVX-512 alone, from 3.2 on none (ADR 0022).
constexpr auto algorithm = dnnl::algorithm::convolution_direct;

#if DNNL_VERSION_MAJOR >= 3

inline dnnl::convolution_forward::primitive_desc forward_of(const ConvolutionDescriptors& d, dnnl::prop_kind kind,
                                                            const dnnl::primitive_attr& attr,
                                                            const dnnl::engine& engine) {
  return {engine, kind, algorithm, d.source, d.weights, d.bias, d.result, d.strides, d.padding, d.padding, attr};
}
inline dnnl::convolution_backward_data::primitive_desc backward_data_of(
    const ConvolutionDescriptors& d, const dnnl::convolution_forward::primitive_desc& hint,
    const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {engine, algorithm, d.source, d.weights, d.result, d.strides, d.padding, d.padding, hint, attr};
}
inline dnnl::convolution_backward_weights::primitive_desc backward_weights_of(
    const ConvolutionDescriptors& d, const dnnl::convolution_forward::primitive_desc& hint,
    const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {engine, algorithm, d.source, d.weights, d.bias, d.result, d.strides, d.padding, d.padding, hint, attr};
}

#else

inline dnnl::convolution_forward::primitive_desc forward_of(const ConvolutionDescriptors& d, dnnl::prop_kind kind,
                                                            const dnnl::primitive_attr& attr,
                                                            const dnnl::engine& engine) {
  return {{kind, algorithm, d.source, d.weights, d.bias, d.result, d.strides, d.padding, d.padding}, attr, engine};
}
inline dnnl::convolution_backward_data::primitive_desc backward_data_of(
    const ConvolutionDescriptors& d, const dnnl::convolution_forward::primitive_desc& hint,
    const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {{algorithm, d.source, d.weights, d.result, d.strides, d.padding, d.padding}, attr, engine, hint};
}
inline dnnl::convolution_backward_weights::primitive_desc backward_weights_of(
    const ConvolutionDescriptors& d, const dnnl::convolution_forward::primitive_desc& hint,
    const dnnl::primitive_attr& attr, const dnnl::engine& engine) {
  return {{algorithm, d.source, d.weights, d.bias, d.result, d.strides, d.padding, d.padding}, attr, engine, hint};
}

#endif

}  // namespace convoy::cpu::onednn

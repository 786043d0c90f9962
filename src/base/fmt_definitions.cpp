// SPDX-License-Identifier: BSD-3-Clause
// The functions of fmt, compiled here once rather than in every source that formats (which is what
// FMT_HEADER_ONLY does, and costs 2 to 3 s a source) or taken from libfmt.so (which our users would
// need). The list of templates is that of fmt 9's own src/format.cc; for other versions CMake
// defines FMT_HEADER_ONLY, and this file is empty.
#include <fmt/format.h>

#ifndef FMT_HEADER_ONLY

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;

template locale_ref::locale_ref(const std::locale&);
template auto locale_ref::get<std::locale>() const -> std::locale;

template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
template void vformat_to(buffer<char>&, string_view, basic_format_args<buffer_context<char>>,
                         locale_ref);

}  // namespace detail
FMT_END_NAMESPACE

#endif

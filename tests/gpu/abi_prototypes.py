"""Compares the function pointers of nvml/abi.hpp with the prototypes of an nvml.h, type by type, by the compiler."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A driver fills the version that is asked for, whichever of these the header's prototype names.
VERSIONED = {"FabricInfoV3": ["nvmlGpuFabricInfo_v2_t", "nvmlGpuFabricInfo_v3_t"]}
HANDLES = {"Device": "nvmlDevice_t", "EventSet": "nvmlEventSet_t", "GpmSample": "nvmlGpmSample_t",
           "GpuInstance": "nvmlGpuInstance_t"}
# `alike` is true of types that a call passes in the same way: numbers and enumerations of one size and sign, structs that
# are declared for each other, pointers to such; ours of void fits any pointer.
TRAITS = """#include <cstdint>
#include <type_traits>
template <class Ours> struct declared_as { template <class Theirs> static constexpr bool is = false; };
%s
template <class T> struct number { using type = T; };
template <class T> requires std::is_enum_v<T> struct number<T> { using type = std::underlying_type_t<T>; };
template <class Ours, class Theirs> constexpr bool alike() {
  using O = std::remove_cv_t<Ours>;
  using T = std::remove_cv_t<Theirs>;
  if constexpr (std::is_pointer_v<O> && std::is_pointer_v<T>) {
    using To = std::remove_pointer_t<O>;
    if constexpr (declared_as<O>::template is<T>) return true;
    else if constexpr (std::is_void_v<To>) return true;
    else return alike<To, std::remove_pointer_t<T>>();
  } else if constexpr ((std::is_integral_v<O> || std::is_enum_v<O>) && (std::is_integral_v<T> || std::is_enum_v<T>)) {
    using A = typename number<O>::type;
    using B = typename number<T>::type;
    return sizeof(A) == sizeof(B) && std::is_signed_v<A> == std::is_signed_v<B>;
  } else {
    return std::is_same_v<O, T> || declared_as<O>::template is<T>;
  }
}
template <class Ours, class Theirs> struct calls { static constexpr bool are_alike = false; };
template <class R, class... A, class S, class... B> requires (sizeof...(A) == sizeof...(B))
struct calls<R (*)(A...), S (*)(B...)> { static constexpr bool are_alike = alike<R, S>() && (alike<A, B>() && ...); };
"""


def functions() -> list[str]:
    return re.findall(r"\bX\((nvml\w+),", (ROOT / "collectors/nvidia/nvml/abi.hpp").read_text())


def traits(structs: list[tuple[str, str]], header: str) -> str:
    """`structs`: (ours, theirs)."""
    pairs = [(ours, [one for one in {theirs, *VERSIONED.get(ours, [])} if re.search(rf"\b{one}\b", header)]) for ours, theirs in structs]
    pairs = [(ours, theirs) for ours, theirs in pairs if theirs]
    lines = [f"template <> struct declared_as<ours::{ours}> {{ template <class T> static constexpr bool is = "
             + " || ".join(f"std::is_same_v<T, {one}>" for one in sorted(theirs)) + "; };" for ours, theirs in pairs]
    lines += [f"template <> struct declared_as<ours::{ours}> {{ template <class T> static constexpr bool is = std::is_same_v<T, {theirs}>; }};"
              for ours, theirs in HANDLES.items()]
    return TRAITS % "\n".join(lines)


def compare(header: str) -> tuple[list[str], list[str], list[str]]:
    """Lines of C++, the functions compared, and those that the header does not declare."""
    has = {name: bool(re.search(rf"\bnvmlReturn_t\s+DECLDIR\s+{name}\s*\(", header)) for name in functions()}
    compared = [name for name in has if has[name]]
    lines = [f'same("prototype {name}: alike", calls<decltype(gpumeter::nvidia::NvmlFunctions::{name}), decltype(&::{name})>::are_alike, 1);'
             for name in compared]
    return lines, compared, [name for name in has if not has[name]]

"""Lowered modules as text."""

from __future__ import annotations

from spmdlint.runtime_checks.calls.modules import canonical, first_difference


def test_addresses_become_numbers_in_order() -> None:
    here = canonical("axis <axis 0x7f12a> and <axis 0x7f12b> and <axis 0x7f12a>")
    there = canonical("axis <axis 0x7eee1> and <axis 0x7eee0> and <axis 0x7eee1>")
    assert here == there
    assert here != canonical("axis <axis 0x7f12a> and <axis 0x7f12b> and <axis 0x7f12b>")


def test_callbacks_differ_in_number_only() -> None:
    line = (
        "%0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%arg0) {{mhlo.backend_config = {{index = {} : ui64}}}}"
    )
    assert canonical(line.format(3)) == canonical(line.format(7))
    assert canonical("%c = stablehlo.constant dense<3> : tensor<i64>") != canonical(
        "%c = stablehlo.constant dense<4> : tensor<i64>"
    )


def test_first_difference() -> None:
    assert first_difference("a\nb\nc", "a\n x\nc") == (2, "b", "x")
    assert first_difference("a", "a\nb") == (2, "", "b")
    assert first_difference("a\nb", "a\nb") is None
    assert first_difference("module @jit_f attributes {}\nb", "module @jit_g attributes {}\nb") is None


def test_names_of_values_count_last() -> None:
    one = "%16 = stablehlo.add %arg4, %arg5\n%17 = stablehlo.sine %16\n"
    other = "%12 = stablehlo.add %arg4, %arg5\n%13 = stablehlo.cosine %12\n"
    assert first_difference(one, other) == (2, "%17 = stablehlo.sine %16", "%13 = stablehlo.cosine %12")
    first, second = "%2 = stablehlo.subtract %0, %1", "%2 = stablehlo.subtract %1, %0"
    assert first_difference(f"{first}\n", f"{second}\n") == (1, first, second)

"""Lowered and compiled modules as text."""

from __future__ import annotations

import pytest

from spmdlint.runtime_checks.modules import canonical, compiled_communicates, first_difference, lowered_communicates

TWO_BY_TWO = (0, 0, 1, 1)


@pytest.mark.parametrize(
    ("line", "spans"),
    [
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true", True),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true", False),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups={{0,2},{1,3}}", True),
        ("%r = f32[] all-reduce(%p), channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true", False),
        ("%r = f32[] all-reduce(%p), replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true", True),
        ("%r = f32[] all-reduce(%p), replica_groups={}", True),
        ("%r = f32[4] collective-permute(%p), source_target_pairs={{0,1},{1,0}}", False),
        ("%r = f32[4] collective-permute(%p), source_target_pairs={{0,3},{3,0}}", True),
        ("%r = (f32[4], f32[8]) all-gather-start(%p), replica_groups={{0,1,2,3}}, dimensions={0}", True),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['host'=2,'local'=2] {'local'}", False),
        ("%r = f32[1] all-reduce(%p), channel_id=1, replica_groups=mesh['host'=2,'local'=2] {'host'}", True),
        ("%r = f32[1] all-reduce(%p), replica_groups=mesh['a'=4], device_ids=(3,1,2,0) {'a'}", True),
        ("%r = f32[] add(%p, %all-reduce.3)", False),
        ("%r = f32[] all-reduce(%p), replica_groups={{0,9}}", True),
        ('%r = f32[] custom-call(%p), custom_call_target="tpu_custom_call"', True),
        ("%r = f32[] fusion(%p), kind=kLoop, calls=%fused", False),
    ],
)
def test_a_compiled_module_communicates_where_a_group_spans_processes(line: str, spans: bool) -> None:
    assert compiled_communicates(f"ENTRY main {{\n  {line}\n}}\n", TWO_BY_TWO) is spans


@pytest.mark.parametrize(
    ("groups", "spans"),
    [("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", True), ("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", False)],
)
def test_a_lowered_module_names_its_groups(groups: str, spans: bool) -> None:
    text = f'%1 = "stablehlo.all_reduce"(%0) <{{replica_groups = {groups}}}> ({{\n  ^bb0(...):\n}})\n'
    assert lowered_communicates(text, TWO_BY_TWO) is spans


@pytest.mark.parametrize(("axis", "spans"), [("local", False), ("host", True)])
def test_a_lowered_module_names_the_axes_of_its_groups(axis: str, spans: bool) -> None:
    mesh = 'sdy.mesh @mesh_0 = <["host"=2, "local"=2]> {stablehlo.mesh = {axes = []}}\n'
    axes = f'#stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = [#stablehlo.axis_ref<name = "{axis}">]>'
    text = mesh + f'%1 = "stablehlo.all_reduce"(%0) <{{replica_groups = {axes}, use_global_device_ids}}> ({{\n}})\n'
    assert lowered_communicates(text, TWO_BY_TWO) is spans
    assert lowered_communicates(text.replace('["host"=2', '["other"=2'), TWO_BY_TWO) is (axis == "host" or spans)


def test_a_lowered_module_without_collectives_is_undecided() -> None:
    assert not lowered_communicates("%1 = stablehlo.add %0, %0 : tensor<f32>", TWO_BY_TWO)


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
    found = first_difference("a\nb\nc", "a\n x\nc")
    assert found is not None
    assert (found.number, found.first, found.second) == (2, "b", "x")
    longer = first_difference("a", "a\nb")
    assert longer is not None
    assert (longer.number, longer.first, longer.second) == (2, "", "b")
    assert first_difference("a\nb", "a\nb") is None
    assert first_difference("module @jit_f attributes {}\nb", "module @jit_g attributes {}\nb") is None


def test_names_of_values_count_last() -> None:
    one = "%16 = stablehlo.add %arg4, %arg5\n%17 = stablehlo.sine %16\n"
    other = "%12 = stablehlo.add %arg4, %arg5\n%13 = stablehlo.cosine %12\n"
    found = first_difference(one, other)
    assert found is not None
    assert (found.number, found.first) == (2, "%17 = stablehlo.sine %16")
    swapped = first_difference("%2 = stablehlo.subtract %0, %1\n", "%2 = stablehlo.subtract %1, %0\n")
    assert swapped is not None
    assert swapped.number == 1

"""What the programs of `gpu.py` ask of a GPU, without one: python benchmarks/roofline.py

Compiles them for an H100, or another of `GPUS`, on a machine that has none, in minutes: XLA's compiler for CUDA needs a
description of the device and the packages of `.[cuda]`, not the device. Prints for each its kernels, the bytes of their
operands and results and its memory, and lower bounds of its time: those bytes, each read or written once, at the
published bandwidth, and its matrix products at the published peak. Nothing is timed, and nothing autotuned.
"""

import argparse
import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0 " + os.environ.get("XLA_FLAGS", "")

import gpu
import hlo
import jax
from jax._src import xla_bridge
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, SingleDeviceSharding

from alphagateau import config
from alphagateau.networks.gateau import kernel

# GPUs as XLA describes them: fields of its GpuTargetConfigProto that differ, from NVIDIA's data sheets.
COMMON = """
  threads_per_block_limit: 1024  threads_per_warp: 32  shared_memory_per_block: 49152  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535  block_dim_limit_z: 65535  registers_per_core_limit: 65536  registers_per_block_limit: 65536
"""
GPUS = {
    "H100": """shared_memory_per_core: 233472  threads_per_core_limit: 2048  core_count: 132  fpus_per_core: 128
        memory_bandwidth: 3352320000000  l2_cache_size: 52428800  clock_rate_ghz: 1.98  device_memory_size: 84942979072
        shared_memory_per_block_optin: 232448  cuda_compute_capability { major: 9 }""",
    "H200": """shared_memory_per_core: 233472  threads_per_core_limit: 2048  core_count: 132  fpus_per_core: 128
        memory_bandwidth: 4800000000000  l2_cache_size: 52428800  clock_rate_ghz: 1.98  device_memory_size: 150000000000
        shared_memory_per_block_optin: 232448  cuda_compute_capability { major: 9 }""",
    "A100": """shared_memory_per_core: 167936  threads_per_core_limit: 2048  core_count: 108  fpus_per_core: 64
        memory_bandwidth: 2039000000000  l2_cache_size: 41943040  clock_rate_ghz: 1.41  device_memory_size: 85000000000
        shared_memory_per_block_optin: 166912  cuda_compute_capability { major: 8 }""",
    "RTX 4090": """shared_memory_per_core: 102400  threads_per_core_limit: 1536  core_count: 128  fpus_per_core: 128
        memory_bandwidth: 1008000000000  l2_cache_size: 75497472  clock_rate_ghz: 2.52  device_memory_size: 25000000000
        shared_memory_per_block_optin: 101376  cuda_compute_capability { major: 8 minor: 9 }""",
}


def find_gpu(name: str) -> SingleDeviceSharding:
    """Where to compile for. JAX looks for a GPU to find out which kind of one is meant; here it is told."""
    canonicalize = xla_bridge.canonicalize_platform
    xla_bridge.canonicalize_platform = lambda name: "cuda" if name == "gpu" else canonicalize(name)
    description = f"""gpu_device_info {{ {COMMON} {GPUS[name]} }} platform_name: "CUDA"
        dnn_version_info {{ major: 9 minor: 10 patch: 0 }} runtime_version {{ major: 12 minor: 8 patch: 0 }}
        device_description_str: "NVIDIA {name}" """
    topology = topologies.get_topology_desc("gpu", "cuda", target_config=description, topology="1x1x1")
    return SingleDeviceSharding(topology.devices[0])


def compile_for(device: SingleDeviceSharding, program: gpu.Program):
    """The program compiled, from the shapes of what it takes."""
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device), program.inputs)
    [kind] = {each.device_kind for each in device.device_set}
    described = AbstractDevice(kind.replace("RTX", "GeForce RTX"), None, "gpu")  # Pallas asks for it from jax 0.11 on
    with jax.sharding.use_abstract_mesh(AbstractMesh((), (), abstract_device=described)):
        return program.run.trace(*shapes).lower(lowering_platforms=("cuda",)).compile()


def report(program: gpu.Program, compiled, name: str) -> str:
    """Lines on a program compiled for the GPU `name`; in sums a loop of a length known at run time only counts once."""
    loops, memory = hlo.loops_of(compiled.as_text()), compiled.memory_analysis()
    moved = hlo.total_bytes(loops)
    lines = [
        f"{program.name}, {program.dtype}, {program.kernel}, {program.size}: "
        f"{hlo.total_kernels(loops)} kernels, {moved / 1e9:.3g} GB, "
        f"{program.flops / 1e12:.3g} TFLOP of products, {program.flops / moved:.3g} FLOP a byte, "
        f"memory {(memory.temp_size_in_bytes + memory.argument_size_in_bytes) / 1e9:.3g} GB"
    ]
    for loop in loops[1:]:
        trips = loop.trips or "?"
        lines.append(
            f"{'  ' * loop.depth}loop of {trips} turns: {loop.kernels} kernels, {loop.bytes / 1e9:.3g} GB a turn"
        )
    device = gpu.DEVICES[name]
    bounds = moved / device.bandwidth, program.flops / getattr(device, program.dtype)
    lines.append(f"  {name}: at least {bounds[0]:.3g} s for the bytes, {bounds[1]:.3g} s for the products")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiment", default=str(gpu.ROOT / "experiments" / "learning_speed_alphagateau.toml"))
    parser.add_argument("--factors", default="1", help="multiples of the experiment's games and batch")
    parser.add_argument("--only", default="", help="part of a program's name")
    parser.add_argument("--gpu", default="H100", choices=GPUS)
    parser.add_argument("--kernel", default="xla", choices=(*gpu.KERNELS, "auto"), help="network.kernel")
    parser.add_argument("--normalization", help="network.normalization, else the experiment's")
    args = parser.parse_args()
    experiment, device = config.load(args.experiment), find_gpu(args.gpu)
    if args.normalization:
        experiment = gpu.with_network(experiment, normalization=args.normalization)
    jax.default_backend = lambda: "gpu"  # the network's code asks for it: no chunks, as on a GPU
    kernel.is_right_here = lambda *_: True
    factors = [float(x) for x in args.factors.split(",")]
    for dtype in gpu.DTYPES:
        for program in gpu.programs(gpu.with_network(experiment, dtype=dtype, kernel=args.kernel), factors):
            if args.only in program.name:
                try:
                    print(report(program, compile_for(device, program), args.gpu), flush=True)
                except jax.errors.JaxRuntimeError as error:  # such as a kernel that wants more memory than there is
                    print(f"{program.name}, {dtype}, {args.kernel}, {program.size}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()

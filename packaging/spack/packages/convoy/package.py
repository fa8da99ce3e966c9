# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Convoy(CMakePackage, CudaPackage):
    """Trains image-classification networks as an MPI batch job: HDF5 partitions, oneDNN on CPU cores, cuDNN and NCCL on GPUs,
    averaging of weights or gradients over the ranks."""

    homepage = "https://github.com/convoy/convoy"
    license("Apache-2.0")

    # From a working copy: spack dev-build, or `spack develop --path . convoy@main`.
    version("main")

    variant("tests", default=False, description="build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("openmpi@4.1:")
    depends_on("hdf5@1.10.8:~mpi+threadsafe+hl")
    depends_on("onednn@2.6:")
    depends_on("boost+program_options")
    depends_on("eigen@3.4:", type="build")
    depends_on("fmt")
    depends_on("nlohmann-json")
    depends_on("protobuf")
    depends_on("isa-l")
    depends_on("zlib-api")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("libwebp")
    depends_on("libarchive")
    depends_on("curl")
    depends_on("hwloc")
    depends_on("googletest+gmock", when="+tests")
    depends_on("cudnn@9.8:", when="+cuda")
    depends_on("nccl", when="+cuda")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define_from_variant("CONVOY_TESTS", "tests"),
            self.define("CONVOY_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]

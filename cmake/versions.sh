# Pinned versions, in one place. Sourced by scripts/*.sh.
# Debian 12 and Ubuntu 24.04 carry the system packages; apt gives the distribution's version.
APT_BUILD="g++ cmake ninja-build pkg-config libcli11-dev libfmt-dev nlohmann-json3-dev libsqlite3-dev"
APT_TEST="libgtest-dev"
# The CUDA toolkit parts that are needed where no toolkit is installed: NVRTC (to compile kernels) and headers (to
# build). Wheels of PyPI; all must be of one CUDA release.
WHEEL_NVRTC="nvidia-cuda-nvrtc==13.0.88"
WHEEL_RUNTIME="nvidia-cuda-runtime==13.0.88"

# SPDX-License-Identifier: BSD-3-Clause
"""The MPIs that the drop-in is tested with: how to compile for them and how to start ranks.

find("openmpi") looks for the distribution's packages, find("openmpi5", FOLDER) for an environment
of scripts/mpi_environments.py. Those of the standard ABI are the same MPIs with another library.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess

ENVIRONMENTS = pathlib.Path(__file__).resolve().parents[2] / "build" / "venv-mpi"
# Environment and library of each.
INSTALLED = {
    "openmpi5": ("openmpi5", "mpi"),
    "mpich5": ("mpich5", "mpi"),
    "mpich5_abi": ("mpich5", "mpi_abi"),
    "intel": ("intel", "mpi"),
    "intel_abi": ("intel", "mpi_abi"),
}
PACKAGED = ("openmpi", "mpich")
NAMES = (*PACKAGED, *INSTALLED)

# Variables of mpirun: root may start ranks, and more of them than there are cores.
LAUNCH = {
    "openmpi": {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_rmaps_base_oversubscribe": "1"},
    # libfabric sleeps for a second while it looks for networks.
    "openmpi5": {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
                 "OMPI_MCA_mtl": "^ofi", "OMPI_MCA_btl": "^ofi"},
}


@dataclasses.dataclass
class HostMpi:
    name: str
    title: str  # what unisono mpirun calls it, before the version
    mpirun: str
    compiler: list  # the command for C
    libraries: list  # what follows the sources
    fortran: list = ()  # the command for Fortran; empty: there is none
    fortran_libraries: list = ()
    interfaces: tuple = ("MPIF_H", "USE_MPI", "USE_F08")

    def environment(self, folder, more):
        """Variables for mpirun, which is in the folder: see write_launchers()."""
        return {**os.environ, **LAUNCH.get(self.name, {}),
                "PATH": f"{folder}:{os.environ['PATH']}", **more}

    def write_launchers(self, folder):
        """mpirun and mpiexec, where the tool finds them. Not links: MPICH's looks for its parts
        beside the name that it is called by, Intel's in PATH."""
        for name in ("mpirun", "mpiexec"):
            path = pathlib.Path(folder) / name
            path.write_text(f'#!/bin/sh\nPATH="{os.path.dirname(self.mpirun)}:$PATH"\n'
                            f'exec "{self.mpirun}" "$@"\n')
            path.chmod(0o755)


class Missing(Exception):
    """Says which MPI cannot be had and what to do."""


def title_of(name):
    if name.startswith("openmpi"):
        return "Open MPI "
    return "Intel MPI " if name.startswith("intel") else "MPICH "


def find_packaged(name):
    for program in (f"mpirun.{name}", f"mpicc.{name}"):
        if shutil.which(program) is None:
            raise Missing(f"{program} is not installed")
    fortran = shutil.which(f"mpif90.{name}")
    return HostMpi(name, title_of(name), shutil.which(f"mpirun.{name}"),
                   [shutil.which(f"mpicc.{name}")], [], [fortran] if fortran else [])


def add_intels_fortran(mpi, root):
    """Intel's modules for gfortran; there are none of mpi_f08, and none for the standard ABI."""
    gfortran = shutil.which("gfortran")
    if gfortran is None:
        return
    version = subprocess.run([gfortran, "-dumpversion"], capture_output=True, text=True,
                             check=True).stdout.strip().partition(".")[0]
    for modules in (root / "include" / "mpi" / "gfortran").glob(f"{version}.*"):
        mpi.fortran = [gfortran, f"-I{root}/include", f"-I{modules}"]
        # Its library for Fortran finds that for C by the program's path.
        mpi.fortran_libraries = [f"-L{root}/lib", f"-Wl,--disable-new-dtags,-rpath,{root}/lib",
                                 "-lmpifort", "-lmpi"]
        mpi.interfaces = ("MPIF_H", "USE_MPI")


def find(name, folder):
    """The MPI. `folder`: where the environments are."""
    if name in PACKAGED:
        return find_packaged(name)
    environment, library = INSTALLED[name]
    root = pathlib.Path(folder).resolve() / environment
    if not (root / "complete.stamp").is_file():
        raise Missing(f"{root} is not complete; scripts/mpi_environments.py makes it, and needs a "
                      "package index (pip)")
    compiler = [os.environ.get("CC", "cc"), f"-I{root}/include"]
    if library == "mpi_abi":
        compiler.append("-DMPI_ABI")
    libraries = [f"-L{root}/lib", f"-Wl,-rpath,{root}/lib", "-Wl,--enable-new-dtags",
                 f"-l{library}"]
    found = HostMpi(name, title_of(name), str(root / "bin" / "mpirun"), compiler, libraries)
    if name == "intel":
        add_intels_fortran(found, root)
    return found

# SPDX-License-Identifier: (Apache-2.0 OR MIT)
"""becalm for Spack: packaging/dist writes the version and the checksum of its sources where the word `versions` stands alone."""

import os

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Becalm(CargoPackage):
    """Finds, explains, predicts and removes operating system noise.

    The archive of the sources is looked for in a mirror, or in the folder in which spack is called.
    """

    manual_download = True

    license("Apache-2.0 OR MIT")

    # versions

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    requires("platform=linux", msg="becalm reads what Linux alone tells")

    build_directory = "crates/cli"
    build_args = ["--locked"]

    def url_for_version(self, version):
        return f"file://{os.getcwd()}/becalm-{version}.tar.gz"

    def check(self):
        """The tests of becalm measure the machine and take root: make test in the sources runs them."""

    @run_after("install")
    def install_pages(self):
        becalm = Executable(self.prefix.bin.becalm)
        becalm("man", self.prefix.share.man.man1)
        for shell, folder, name in (
            ("bash", bash_completion_path(self.prefix), "becalm"),
            ("fish", fish_completion_path(self.prefix), "becalm.fish"),
            ("zsh", zsh_completion_path(self.prefix), "_becalm"),
        ):
            mkdirp(folder)
            with open(join_path(folder, name), "w") as file:
                becalm("completions", shell, output=file)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def try_it(self):
        Executable(self.prefix.bin.becalm)("--version")

"""Builds the kernels ahead of time for the wheel; where that cannot be done, the wheel is for any platform without."""

import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REQUIRED = "WORKBENCH_KERNELS_REQUIRED"
"""Environment variable: a wheel without ready kernels is an error, as for a release."""


class KernelsBuildHook(BuildHookInterface):
    """Adds the extension module to a wheel; an editable install gets it in the package's own folder."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the module, and say which Pythons and platforms the wheel is for."""
        sys.path.insert(0, self.root)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [self.root, os.environ.get("PYTHONPATH")]))
        from workbench.compiled.native.building import NotBuildableError, build
        from workbench.compiled.native.library import FILE, ready

        try:
            if ready("") is None:  # else it is there already, built from these sources
                build()
        except NotBuildableError as error:
            if os.environ.get(REQUIRED):
                raise
            self.app.display_warning(f"no ready kernels, they are compiled at the first start: {error}")
            return
        if version != "editable":
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
            build_data["artifacts"].append(str(Path(FILE).relative_to(self.root)))

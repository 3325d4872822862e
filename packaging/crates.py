"""What the program is made of beside its own code: crates, the C code that one of them carries, the charts of its pages, Rust's standard
library, and in a static program the C library. Read by `licenses` and `sbom` beside this file."""

import hashlib
import html
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
VERSION = WORKSPACE["version"]
# The files of a crate that hold licenses, or what these want to be repeated.
LEGAL = re.compile(r"(?i)(un)?licen[cs]e|copying|copyright|notice")


@dataclass
class Part:
    """A part of the program."""

    name: str
    version: str
    # An SPDX expression.
    license: str
    description: str = ""
    # The package URL, where it is published.
    purl: str | None = None
    # Of its archive, or of the file, in hexadecimal.
    sha256: str | None = None
    # The texts that go with it.
    texts: list[str] = field(default_factory=list)
    # The keys of the parts that it uses.
    uses: list[str] = field(default_factory=list)
    ours: bool = False

    @property
    def key(self) -> str:
        return f"{self.name}@{self.version}"


def run(*command: str) -> str:
    """What a command prints.

    Raises SystemExit, with what it said, if it fails.
    """
    ended = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{ended.stderr}")
    return ended.stdout


def parts(static: bool) -> list[Part]:
    """All parts of the program as it is built for this machine, by name; those of a static one, if that is asked for."""
    found = crates() + [charts(), standard_library()]
    if static:
        found += c_library()
    return sorted(found, key=lambda part: (part.name, part.version))


def crates() -> list[Part]:
    """The crates that are compiled into the program, our own among them, and the C code in one of theirs."""
    target = re.search(r"^host: (.*)$", run("rustc", "-vV"), flags=re.M)[1]
    # This one, and not the metadata, knows which optional dependencies are taken.
    tree = run("cargo", "tree", "--package", "becalm", "--locked", "--edges", "normal", "--target", target, "--prefix", "none",
               "--format", "{p}")
    taken = {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    packages = {each["id"]: each for each in metadata["packages"] if (each["name"], f"v{each['version']}") in taken}
    checksums = {(each["name"], each["version"]): each.get("checksum")
                 for each in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    uses = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    found = []
    for identity, each in packages.items():
        name, version = each["name"], each["version"]
        part = Part(name, version, each["license"].replace("/", " OR "), (each["description"] or "").strip(),
                    sha256=checksums[name, version], ours=not each["source"])
        for dependency in uses[identity]:
            used = packages.get(dependency["pkg"])
            if used and any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                part.uses.append(f"{used['name']}@{used['version']}")
        if each["source"]:
            # A plus would be a space in an address.
            part.purl = f"pkg:cargo/{name}@{version.replace('+', '%2B')}"
            part.texts = legal_texts(Path(each["manifest_path"]).parent)
            if not part.texts:
                sys.exit(f"{name} {version} comes without the text of its license, {part.license}; add it to packaging/crates.py")
        found.append(part)
        if name == "zstd-sys":
            found.append(zstd(part, Path(each["manifest_path"]).parent / "zstd"))
    return found


def zstd(crate: Part, folder: Path) -> Part:
    """The C library in the crate, whose version the crate's own names."""
    version = re.search(r"\+zstd\.(.*)$", crate.version)[1]
    part = Part("zstd", version, "BSD-3-Clause", "Fast lossless compression", f"pkg:generic/zstd@{version}")
    part.texts = [(folder / "LICENSE").read_text()]
    crate.uses.append(part.key)
    return part


def charts() -> Part:
    """What draws the charts of pages, in which d3, zrender and tslib are."""
    folder = ROOT / "crates/report/assets/echarts"
    source = (folder / "echarts.min.js").read_text()
    version = re.search(r'\bt\.version="([0-9.]+)"', source)[1]
    part = Part("echarts", version, "Apache-2.0 AND BSD-3-Clause AND 0BSD", "Charts on pages", f"pkg:npm/echarts@{version}")
    part.sha256 = hashlib.sha256(source.encode()).hexdigest()
    # The last is tslib's, which it carries as a remark.
    part.texts = [*legal_texts(folder), re.search(r"Copyright \(c\) Microsoft.*?(?=\*{10})", source, flags=re.S)[0]]
    return part


def legal_texts(folder: Path) -> list[str]:
    """The texts beside a crate's manifest that go with it."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and LEGAL.match(entry.name))
    return [(folder / name).read_text(errors="replace") for name in names]


def standard_library() -> Part:
    """Rust's standard library with the crates in it, by the page that comes with the compiler."""
    version = run("rustc", "--version").split(" ")[1]
    documents = Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust"
    page = documents / "COPYRIGHT-library.html"
    if not page.is_file():
        sys.exit(f"this compiler comes without {page}, in which the licenses of its library stand; take one of rustup")
    said = page.read_text()
    # What a page says before the crates, and the files of these.
    beginning = html.unescape(re.sub(r"<[^>]+>", "", said.split("Out-of-tree dependencies</h2>")[0].split("In-tree files</h2>")[-1]))
    texts = [html.unescape(text) for text in re.findall(r"<pre>(.*?)</pre>", said, flags=re.S)]
    texts += [(documents / "licenses" / f"{name}.txt").read_text() for name in ("Apache-2.0", "MIT", "Unicode-3.0")]
    beginning = "\n".join(line.strip() for line in beginning.splitlines() if line.strip())
    return Part("rust-std", version, "(MIT OR Apache-2.0) AND Unicode-3.0", "The standard library of Rust, and the crates in it",
                f"pkg:generic/rust-std@{version}", texts=[beginning, *texts])


def c_library() -> list[Part]:
    """What a static program has of the system on which it was linked."""
    libc = run("getconf", "GNU_LIBC_VERSION").split()[1]
    libgcc = run("gcc", "-dumpfullversion").strip()
    documents = Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust/licenses"
    lesser = Path("/usr/share/common-licenses/LGPL-2.1")
    if not lesser.is_file():
        sys.exit(f"there is no {lesser}, the license of the C library in a static program; build it on Debian")
    return [
        Part("glibc", libc, "LGPL-2.1-or-later", "The C library", f"pkg:generic/glibc@{libc}", texts=[lesser.read_text()]),
        Part("libgcc", libgcc, "GPL-3.0-or-later WITH GCC-exception-3.1", "The library of the GNU compilers",
             f"pkg:generic/gcc@{libgcc}",
             texts=[(documents / f"{name}.txt").read_text() for name in ("GPL-3.0-or-later", "GCC-exception-3.1")]),
    ]


def source_date() -> int:
    """The time that all that is made carries, in seconds since 1970."""
    if "SOURCE_DATE_EPOCH" not in os.environ:
        return int(run("git", "log", "-1", "--format=%ct"))
    return int(os.environ["SOURCE_DATE_EPOCH"])

//! Debian's kernels: downloaded as packages, unpacked, and kept in a cache directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use becalm_units::UnknownName;

use crate::LabError;

/// The modules for the guest's disk, in loading order.
const DISK_MODULES: [&str; 6] =
    ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"];

/// The name of a decompressed kernel.
const PLAIN: &str = "vmlinux";

/// Debian's kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown_flavor)]
pub enum Flavor {
    /// Debian's default kernel.
    Stock,
    /// The same source with PREEMPT_RT; only this one has the osnoise and timerlat tracers.
    #[strum(serialize = "rt")]
    Realtime,
    /// The same source for virtual machines of cloud providers, with fewer drivers.
    Cloud,
}

fn unknown_flavor(text: &str) -> UnknownName {
    UnknownName::new::<Flavor>("kernel of the lab", text)
}

impl Flavor {
    /// The package that depends on the newest kernel of this flavor.
    const fn package(self) -> &'static str {
        match self {
            Self::Stock => "linux-image-amd64",
            Self::Realtime => "linux-image-rt-amd64",
            Self::Cloud => "linux-image-cloud-amd64",
        }
    }
}

/// A kernel unpacked from Debian's package, in its own directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    folder: PathBuf,
}

impl Kernel {
    /// The kernel of a flavor, from `cache` if available, else from Debian's archive.
    ///
    /// A cached kernel stays until someone removes it, so tests keep using the same one. Fails if the package cannot be found, downloaded
    /// (`apt-get update` may never have been run), unpacked or stored.
    pub fn debian(flavor: Flavor, cache: &Path) -> Result<Self, LabError> {
        let folder = cache.join(flavor.package());
        if !folder.exists() {
            fs::create_dir_all(cache).map_err(LabError::file("create", cache))?;
            // Unpacked elsewhere and then renamed: an interrupted attempt is never mistaken for a kernel.
            let partial = tempfile::tempdir_in(cache).map_err(LabError::file("create a directory in", cache))?;
            let package = real_package(flavor.package())?;
            download(&package, partial.path())?;
            unpack(&package, partial.path())?;
            let kernel = Self { folder: partial.path().to_owned() };
            decompress(&kernel.image()?, &kernel.config()?)?;
            let partial = partial.keep();
            fs::rename(&partial, &folder).map_err(LabError::file("rename to", &folder))?;
        }
        Ok(Self { folder })
    }

    /// The kernel image: decompressed if possible, because that takes an emulated CPU five seconds, otherwise as packed by Debian. Fails if
    /// it is not in the cache.
    pub fn image(&self) -> Result<PathBuf, LabError> {
        let plain = self.find(PLAIN, |name| name == PLAIN);
        plain.or_else(|_| self.find("vmlinuz", |name| name.starts_with("vmlinuz-")))
    }

    /// The kernel's build configuration. Fails if it is not in the cache.
    pub fn config(&self) -> Result<String, LabError> {
        let path = self.find("config", |name| name.starts_with("config-"))?;
        fs::read_to_string(&path).map_err(LabError::file("read", &path))
    }

    /// The modules for the guest's disk, in loading order. Fails if one of them is not in the cache.
    pub fn disk_modules(&self) -> Result<Vec<PathBuf>, LabError> {
        DISK_MODULES.iter().map(|module| self.find(module, |name| name.strip_suffix(".ko") == Some(module))).collect()
    }

    fn find(&self, what: &str, matches: impl Fn(&str) -> bool) -> Result<PathBuf, LabError> {
        let mut open = vec![self.folder.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).map_err(LabError::file("list", &folder))? {
                let entry = entry.map_err(LabError::file("list", &folder))?;
                if entry.path().is_dir() {
                    open.push(entry.path());
                } else if entry.file_name().to_str().is_some_and(&matches) {
                    return Ok(entry.path());
                }
            }
        }
        Err(LabError::lacks(self.folder.display(), what))
    }
}

/// The package with the newest kernel, a dependency of an empty package.
fn real_package(package: &str) -> Result<String, LabError> {
    let mut command = Command::new("apt-cache");
    command.args(["depends", "--important", package]);
    let output = String::from_utf8_lossy(&run(&mut command, "apt")?).into_owned();
    output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
        .ok_or_else(|| LabError::lacks(package, "dependency on a kernel"))
}

fn download(package: &str, folder: &Path) -> Result<(), LabError> {
    // Otherwise apt switches to its own user, who may not write here, and complains.
    let mut command = Command::new("apt-get");
    command.args(["-q", "-o", "APT::Sandbox::User=root", "download", package]).current_dir(folder);
    run(&mut command, "apt").map(drop)
}

/// Unpacks the kernel, its configuration and the modules for the guest's disk: a thousandth of the package's files.
fn unpack(package: &str, folder: &Path) -> Result<(), LabError> {
    let archive = fs::read_dir(folder)
        .map_err(LabError::file("list", folder))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or_else(|| LabError::lacks(package, "archive"))?;
    let mut members = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&archive)
        .stdout(Stdio::piped())
        .spawn()
        .map_err(LabError::start("dpkg-deb", "dpkg"))?;
    let stream = members.stdout.take().expect("standard output was asked for");
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--wildcards", "./boot/vmlinuz-*", "./boot/config-*"])
        .args(DISK_MODULES.map(|module| format!("*/{module}.ko")))
        .current_dir(folder)
        .stdin(stream);
    let unpacked = run(&mut tar, "tar");
    members.wait().map_err(LabError::file("read", &archive))?;
    unpacked?;
    fs::remove_file(&archive).map_err(LabError::file("remove", &archive))
}

/// Writes the decompressed kernel next to its image. Does nothing if QEMU cannot start such a kernel, which requires an entry point of its
/// own (CONFIG_PVH), or if the compression is unknown.
fn decompress(image: &Path, config: &str) -> Result<(), LabError> {
    let bytes = fs::read(image).map_err(LabError::file("read", image))?;
    let has_entry = config.lines().any(|line| line == "CONFIG_PVH=y");
    let Some((program, payload)) = payload(&bytes).filter(|_| has_entry) else { return Ok(()) };
    // The program reads from a file and writes to one, which avoids a deadlock.
    let (packed, plain) = (image.with_file_name("payload"), image.with_file_name(PLAIN));
    fs::write(&packed, payload).map_err(LabError::file("write", &packed))?;
    let open = File::open(&packed).map_err(LabError::file("read", &packed))?;
    let kernel = File::create(&plain).map_err(LabError::file("create", &plain))?;
    run(Command::new(program).args(["--decompress", "--stdout"]).stdin(open).stdout(kernel), program)?;
    fs::remove_file(&packed).map_err(LabError::file("remove", &packed))
}

/// The compressed kernel in an x86 image, and the program to decompress it; `None` if either is unknown. Place and length are in the header
/// (Documentation/arch/x86/boot.rst: `setup_sects`, `payload_offset`, `payload_length`); except for gzip, the length of the contents
/// follows, in four bytes.
fn payload(image: &[u8]) -> Option<(&'static str, &[u8])> {
    let word = |at: usize| Some(u32::from_le_bytes(image.get(at..at + 4)?.try_into().ok()?) as usize);
    // For historical reasons 0 means 4 setup sectors; the boot sector is one more.
    let sectors = match image.get(0x1f1)? {
        0 => 4,
        sectors => usize::from(*sectors),
    };
    let begin = (sectors + 1) * 512 + word(0x248)?;
    let packed = image.get(begin..begin.checked_add(word(0x24c)?)?)?;
    match packed {
        [0x1f, 0x8b, ..] => Some(("gzip", packed)),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(("xz", &packed[..packed.len() - 4])),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(("zstd", &packed[..packed.len() - 4])),
        _ => None,
    }
}

/// Runs a program of this machine to completion and returns its output.
pub fn run(command: &mut Command, package: &'static str) -> Result<Vec<u8>, LabError> {
    let described = format!("{command:?}");
    let output = command.output().map_err(LabError::start(package, package))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(LabError::Other(format!("{described} ended with {}: {}", output.status, message.trim())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with so many sectors of setup that holds this, and something behind it.
    fn image(sectors: u8, payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; (usize::from(if sectors == 0 { 4 } else { sectors }) + 1) * 512 + 16];
        image[0x1f1] = sectors;
        image[0x248..0x24c].copy_from_slice(&16_u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(payload);
        image.extend_from_slice(b"behind");
        image
    }

    #[test]
    fn the_compressed_kernel_is_found_within_its_image() {
        let zstd = b"\x28\xb5\x2f\xfdkernel";
        for sectors in [0, 4, 39] {
            let image = image(sectors, &[zstd.as_slice(), b"size"].concat());
            assert_eq!(payload(&image), Some(("zstd", zstd.as_slice())));
        }
        assert_eq!(payload(&image(1, b"\x1f\x8bkernel")), Some(("gzip", b"\x1f\x8bkernel".as_slice())));
        assert_eq!(payload(&image(1, b"\xfd7zXZ\0kernelsize")), Some(("xz", b"\xfd7zXZ\0kernel".as_slice())));
    }

    #[test]
    fn an_image_that_is_none_has_no_kernel_within() {
        assert_eq!(payload(&[]), None);
        assert_eq!(payload(&[0xff; 0x250]), None);
        assert_eq!(payload(&image(1, b"who knows")), None);
        let whole = image(1, b"\x1f\x8bkernel");
        assert_eq!(payload(&whole[..whole.len() - 7]), None, "it is cut off");
    }
}

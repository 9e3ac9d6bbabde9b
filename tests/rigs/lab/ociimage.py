# SPDX-License-Identifier: Apache-2.0
"""OCI images built layer by layer, so that a test can also build what no tool would.

    image = Image(); image.layer([entry("bin/sh", b"..."), link("bin/x", "sh")]);
    image.write(folder)
"""
import gzip
import hashlib
import io
import json
import pathlib
import platform
import tarfile

BUSYBOX = pathlib.Path("/bin/busybox")
TOOLS = ("sh", "cat", "echo", "env", "grep", "head", "id", "ls", "mkdir", "mount", "ps", "rm",
         "sleep", "stat", "test", "touch", "true",
         "wget", "whoami")
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
TIME = 1577934245


def entry(name, data=b"", mode=0o644, **kwargs):
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, TIME
    for key, value in kwargs.items():
        setattr(info, key, value)
    return info, data


def folder(name, mode=0o755, **kwargs):
    return entry(name, b"", mode, type=tarfile.DIRTYPE, **kwargs)


def link(name, target, **kwargs):
    return entry(name, b"", 0o777, type=tarfile.SYMTYPE, linkname=target, **kwargs)


def hard(name, target):
    return entry(name, b"", 0o644, type=tarfile.LNKTYPE, linkname=target)


def busybox(*more):
    """The entries of a small system."""
    tree = [folder("bin"), folder("etc"), folder("lib"),
            entry("bin/busybox", BUSYBOX.read_bytes(), 0o755)]
    tree += [link(f"bin/{name}", "busybox") for name in TOOLS]
    return tree + [entry("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n"),
                   entry("etc/group", b"root:x:0:\n"), *more]


class Image:
    def __init__(self, architecture=ARCHITECTURE, **config):
        self.blobs, self.layers, self.diffs = {}, [], []
        self.architecture, self.config = architecture, config

    def _blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return "sha256:" + digest

    def layer(self, entries):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for info, data in entries:
                tar.addfile(info, io.BytesIO(data))
        return self.raw_layer(raw.getvalue())

    def raw_layer(self, data):
        packed = gzip.compress(data, 1, mtime=0)
        self.diffs.append("sha256:" + hashlib.sha256(data).hexdigest())
        self.layers.append({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                            "digest": self._blob(packed),
                            "size": len(packed)})
        return self

    def write(self, where, tag="it"):
        """Writes an OCI layout; returns the reference."""
        config = json.dumps({"created": "2020-01-02T03:04:05Z", "architecture": self.architecture,
                             "os": "linux",
                             "config": self.config,
                             "rootfs": {"type": "layers", "diff_ids": self.diffs}}).encode()
        manifest = json.dumps({"schemaVersion": 2,
                               "mediaType": "application/vnd.oci.image.manifest.v1+json",
                               "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                                          "digest": self._blob(config), "size": len(config)},
                               "layers": self.layers}).encode()
        self.digest = self._blob(manifest)
        blobs = pathlib.Path(where) / "blobs" / "sha256"
        blobs.mkdir(parents=True)
        for name, data in self.blobs.items():
            (blobs / name).write_bytes(data)
        (blobs.parent.parent / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        (blobs.parent.parent / "index.json").write_text(json.dumps({
            "schemaVersion": 2,
            "manifests": [{"mediaType": "application/vnd.oci.image.manifest.v1+json",
                           "digest": self.digest,
                                               "size": len(manifest),
                           "annotations": {"org.opencontainers.image.ref.name": tag}}]}))
        return f"oci:{where}:{tag}"

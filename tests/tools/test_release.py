# SPDX-License-Identifier: Apache-2.0
"""tools/release in a scratch repository: what it refuses, and what it makes.

A script plays tools/package in the test of a whole release: tests/package builds the real package.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

TREE = pathlib.Path(__file__).resolve().parents[2]
FILES = ["tools/release", "tools/rebuild-check", "SECURITY.md", "meson.build", "CHANGELOG.md"]
DATE = "1790000000"


def read(*path):
    return pathlib.Path(*path).read_text(encoding="utf-8")


def run(*argv, cwd=None, env=None, status=0, **more):
    done = subprocess.run([str(a) for a in argv], cwd=cwd, env=env, text=True, capture_output=True,
                          timeout=60, check=False, **more)
    assert status is None or done.returncode == status, done.stdout + done.stderr
    return done


class Repository:
    """A scratch repository with the files that tools/release reads, and a home directory."""

    def __init__(self, at):
        self.tree, self.out, self.home = at / "sbx", at / "out", at / "home"
        self.home.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LC_ALL": "C.UTF-8",
                    "SOURCE_DATE_EPOCH": DATE, "GIT_CONFIG_NOSYSTEM": "1",
                    "GIT_AUTHOR_DATE": f"{DATE} +0000", "GIT_COMMITTER_DATE": f"{DATE} +0000"}
        for name in FILES:
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREE / name, self.tree / name)
        shutil.copytree(TREE / "debian", self.tree / "debian")
        self.git("config", "--global", "user.name", "Releaser")
        self.git("config", "--global", "user.email", "releaser@sbx.test")
        self.git("init", "--quiet", "--initial-branch=main", self.tree)
        self.commit()
        self.key = at / "key"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", self.key)

    def git(self, *words):
        return run("git", *words, cwd=self.tree, env=self.env).stdout

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "test")

    def edit(self, name, old, new):
        path = self.tree / name
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    def set_contacts(self):
        self.edit("SECURITY.md", "security@example.org", "security@sbx.test")
        self.edit("debian/control", "maintainers@example.org", "maintainers@sbx.test")
        self.commit()

    def release(self, version="9.8.7", status=0, key=None, out=None, mode=("--dry-run",)):
        return run(self.tree / "tools/release", *mode, "--key", key or self.key,
                   "--out", out or self.out, version, env=self.env, status=status)

    def state(self):
        return self.git("rev-parse", "HEAD"), self.git("tag"), self.git("status", "--porcelain")


@pytest.fixture
def fresh(tmp_path):
    """As the tree is: the contacts are placeholders."""
    return Repository(tmp_path)


@pytest.fixture
def repository(fresh):
    fresh.set_contacts()
    return fresh


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """After a dry run, for tests that only read."""
    repository = Repository(tmp_path_factory.mktemp("released"))
    repository.set_contacts()
    repository.before = repository.state()
    repository.said = repository.release().stdout
    return repository


def refuses(repository, text, **more):
    done = repository.release(status=1, **more)
    assert done.stderr.startswith("error: ") and text in done.stderr
    assert not repository.out.exists() or not (repository.out / "SHA256SUMS").exists()


def test_a_placeholder_for_the_security_contact_is_refused(fresh):
    refuses(fresh, "the security contact in SECURITY.md is a placeholder: security@example.org")
    fresh.edit("SECURITY.md", "security@example.org", "security@sbx.test")
    fresh.commit()
    refuses(fresh, "the maintainer in debian/control is a placeholder")


def test_a_missing_security_contact_is_refused(repository):
    repository.edit("SECURITY.md", "Contact: ", "Write to ")
    repository.commit()
    refuses(repository, "SECURITY.md has no line 'Contact: ADDRESS'")


def test_a_changed_tree_is_refused(repository):
    repository.edit("meson.build", "sbx", "sbx ")
    refuses(repository, "changes that are not committed")


def test_an_existing_tag_is_refused(repository):
    repository.git("tag", "v9.8.7")
    refuses(repository, "tag v9.8.7 already exists")


def test_a_wrong_version_is_refused(repository):
    refuses(repository, "version 0.0.1 is older", version="0.0.1")
    refuses(repository, "invalid version '1.0'", version="1.0")


def test_an_empty_changelog_is_refused(repository):
    repository.edit("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n## 0.0.1 (2026-01-01)\n")
    repository.commit()
    refuses(repository, "nothing under Unreleased")


def test_an_output_directory_with_files_is_refused(repository):
    repository.out.mkdir()
    (repository.out / "x").touch()
    refuses(repository, "is not empty")


def test_a_repository_without_an_identity_is_refused(repository):
    repository.git("config", "--global", "--unset", "user.email")
    repository.git("config", "--global", "user.useConfigOnly", "true")
    refuses(repository, "git has no name and address for the commit")


def test_the_identity_of_the_repository_signs_the_commit(repository):
    for name in ("user.name", "user.email"):
        repository.git("config", "--global", "--unset", name)
    repository.git("config", "--global", "user.useConfigOnly", "true")
    repository.git("config", "user.name", "Only Here")
    repository.git("config", "user.email", "here@sbx.test")
    repository.release()
    assert (repository.out / "SHA256SUMS.sig").exists()


def test_a_key_that_cannot_sign_is_an_error(repository):
    repository.key.write_text("no key\n", encoding="utf-8")
    before = repository.state()
    refuses(repository, "tag v9.8.7 is not signed")
    assert repository.state() == before


def test_a_dry_run_makes_signed_files_and_leaves_the_tree(released):
    assert released.state() == released.before and "Dry run" in released.said
    out = released.out
    assert sorted(p.name for p in out.iterdir()) == [
        "SHA256SUMS", "SHA256SUMS.sig", "sbx-9.8.7.spdx.json", "sbx-9.8.7.tar.xz"]
    run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=out)
    signers = released.home / "signers"
    signers.write_text("releaser " + read(released.key.with_suffix(".pub")), encoding="utf-8")
    verify = ["ssh-keygen", "-Y", "verify", "-f", signers, "-I", "releaser", "-n", "file",
              "-s", out / "SHA256SUMS.sig"]
    sums = read(out, "SHA256SUMS")
    run(*verify, input=sums)
    assert run(*verify, input=sums + " ", status=None).returncode != 0


def test_the_archive_has_the_new_version(released):
    run("tar", "-xf", released.out / "sbx-9.8.7.tar.xz", cwd=released.home)
    tree = released.home / "sbx-9.8.7"
    assert "version: '9.8.7'" in read(tree, "meson.build")
    assert "## Unreleased\n\n## 9.8.7 (2026-09-21)\n" in read(tree, "CHANGELOG.md")
    said = run("dpkg-parsechangelog", "--file", tree / "debian/changelog").stdout
    assert re.search(r"^Version: 9\.8\.7-1$", said, re.M) and "sbx.test" in said
    assert re.search(rf"^Timestamp: {DATE}$", said, re.M)


def test_the_same_commit_gives_the_same_archive(released):
    again = released.out.with_name("again")
    released.release(out=again)
    for name in ("sbx-9.8.7.tar.xz", "sbx-9.8.7.spdx.json", "SHA256SUMS"):
        assert (again / name).read_bytes() == (released.out / name).read_bytes(), name


def test_the_sbom_names_the_static_libraries(released):
    sbom = json.loads(read(released.out, "sbx-9.8.7.spdx.json"))
    assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["documentNamespace"].startswith("urn:uuid:")
    own, *libraries = sbom["packages"]
    assert (own["name"], own["versionInfo"]) == ("sbx", "9.8.7")
    assert own["licenseDeclared"] == "Apache-2.0"
    assert own["checksums"][0]["checksumValue"] in read(released.out, "SHA256SUMS")
    form = "${source:Package} ${source:Version}"
    installed = run("dpkg-query", "-W", "-f", form, "libssl-dev").stdout
    assert installed.split() in [[p["name"], p["versionInfo"]] for p in libraries]
    links = {r["relatedSpdxElement"] for r in sbom["relationships"]
             if r["relationshipType"] == "STATIC_LINK"}
    assert links == {p["SPDXID"] for p in libraries} and len(links) >= 11


def test_a_gpg_key_signs(repository):
    home, name = repository.home / "g", "releaser@sbx.test"
    home.mkdir(mode=0o700)
    repository.env["GNUPGHOME"] = str(home)

    def gpg(*words, status=0):
        return run("gpg", "--batch", *words, env=repository.env, status=status).returncode
    try:
        gpg("--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never")
        repository.release(key=name)
        sums = repository.out / "SHA256SUMS"
        gpg("--verify", f"{sums}.asc", sums)
        sums.write_text("changed\n", encoding="utf-8")
        assert gpg("--verify", f"{sums}.asc", sums, status=None) != 0
    finally:
        run("gpgconf", "--kill", "all", env=repository.env)


PACKAGE = """#!/bin/sh
cd "$1" && touch log &&
for name in sbx_9.8.7-1_amd64.deb sbx-dbgsym_9.8.7-1_amd64.deb sbx_9.8.7-1_amd64.buildinfo; do
	echo $name >$name && sha256sum $name
done >sbx_9.8.7-1_amd64.changes
"""


def test_a_release_has_each_file_that_changes_names_and_moves_the_tree(repository):
    (repository.tree / "tools/package").write_text(PACKAGE, encoding="utf-8")
    (repository.tree / "tools/package").chmod(0o755)
    repository.commit()
    before = repository.state()[0].strip()
    done = repository.release(mode=())
    assert "Created release 9.8.7." in done.stdout and done.stderr == ""
    out = repository.out
    assert sorted(p.name for p in out.iterdir()) == [
        "SHA256SUMS", "SHA256SUMS.sig", "sbx-9.8.7.spdx.json", "sbx-9.8.7.tar.xz",
        "sbx-dbgsym_9.8.7-1_amd64.deb", "sbx_9.8.7-1_amd64.buildinfo",
        "sbx_9.8.7-1_amd64.changes", "sbx_9.8.7-1_amd64.deb"]
    run("sha256sum", "--check", "--strict", "SHA256SUMS", "sbx_9.8.7-1_amd64.changes", cwd=out)
    assert repository.git("log", "--format=%s", f"{before}..v9.8.7") == "release: 9.8.7\n"
    assert repository.git("rev-parse", "v9.8.7^{commit}") == repository.state()[0]
    assert repository.state()[2] == ""


# ---- tools/rebuild-check ----

CONTROL = """Package: sbx
Version: 1
Architecture: all
Maintainer: x <x@sbx.test>
Description: x
"""


def make_package(repository, using):
    """A package that has nothing but the field."""
    root = repository.home / "deb"
    (root / "DEBIAN").mkdir(parents=True, exist_ok=True)
    (root / "DEBIAN/control").write_text(CONTROL + using, encoding="utf-8")
    run("dpkg-deb", "--root-owner-group", "--build", root, repository.home / "x.deb")
    return repository.home / "x.deb"


def test_a_package_is_rebuilt_only_when_a_static_library_has_changed(repository):
    made = run("make", "--silent", "--file=debian/rules", "static-sources", cwd=repository.tree)
    field = f"Static-Built-Using: {made.stdout.strip().rstrip(',')}\n"
    check = [repository.tree / "tools/rebuild-check", make_package(repository, field)]
    assert run(*check).stdout == "No rebuild required\n"
    older = re.sub(r"openssl \(= [^)]+\)", "openssl (= 1.0-1)", field)
    assert older != field
    make_package(repository, older)
    said = run(*check, status=1).stdout
    assert re.fullmatch(r"openssl: built with 1\.0-1, installed is \S+\nRebuild required\n", said)
    make_package(repository, "")
    assert "no field Static-Built-Using" in run(*check, status=2).stderr

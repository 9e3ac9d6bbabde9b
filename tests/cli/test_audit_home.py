# SPDX-License-Identifier: Apache-2.0
"""`sbx audit home`: recorded by create, told when something changed, silent about what is
inside."""


def test_unchanged_changed_and_accepted(inst):
    (inst.home / ".bashrc").write_text("alias ll=ls\n")
    (inst.home / ".ssh").mkdir(mode=0o700)
    (inst.home / ".ssh/id_ed25519").write_text("KEY-OF-THE-USER\n")
    inst.create("demo")
    assert "2 files, none changed" in inst.sbx("audit", "home", "demo", check=0).stdout
    (inst.home / ".bashrc").write_text("evil\n")
    (inst.home / ".ssh/authorized_keys").write_text("ssh-ed25519 AAAA\n")
    p = inst.sbx("audit", "home", "demo", check=1)
    assert "changed  ~/.bashrc  20" in p.stdout and "new      ~/.ssh/authorized_keys  20" in p.stdout
    assert "sbx audit home --accept demo" in p.stderr
    assert ".bashrc" not in inst.sbx("audit", "home", "demo", "--group", "ssh", check=1).stdout
    assert "none changed" in inst.sbx("audit", "home", "demo", "--group", "git", check=0).stdout
    inst.sbx("audit", "home", "demo", "--accept", check=0)
    assert "none changed" in inst.sbx("audit", "home", "demo", check=0).stdout


def test_the_record_is_closed_and_says_nothing(inst):
    (inst.home / ".netrc").write_text("machine a login b password TOP-SECRET\n")
    inst.create("demo")
    folder = next((inst.root / "state/sbx/sandboxes").iterdir())
    record, key = folder / "home-record", inst.root / "state/sbx/home-record.key"
    assert record.stat().st_mode & 0o777 == key.stat().st_mode & 0o777 == 0o600
    assert "TOP-SECRET" not in record.read_text() and " .netrc\n" in record.read_text()
    inst.sbx("rm", "-f", "demo", check=0)


def test_without_a_record_and_wrong_words(inst):
    inst.create("demo")
    record = next((inst.root / "state/sbx/sandboxes").iterdir()) / "home-record"
    record.unlink()
    assert "created without one" in inst.sbx("audit", "home", "demo", check=125).stderr
    inst.sbx("audit", "home", "demo", "--group", "cups", check=2)
    inst.sbx("audit", "home", "nobody", check=1)
    inst.sbx("audit", "home", check=2)

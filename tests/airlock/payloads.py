# SPDX-License-Identifier: Apache-2.0
"""For each kind of data/airlock/autorun.list the files of an attacker, and the command of the user.

A payload has PLANT, the files from a sandbox, and RUN, a command on the host in the same directory.
Its program creates the file CANARY. BEFORE is an earlier command of the user, HOME the user's own
settings. `%C` is the path of the canary, `%W` the directory and `%H` the directory of the
settings.

Kinds of programs that Debian does not have, or only as part of several hundred MB or packages (go,
nix, emacs, gradle, elixir, docker, vagrant, terraform), have files only: FILES.
"""
import dataclasses
import os

TOUCH = "touch '%C'"
SCRIPT = "#!/bin/sh\n" + TOUCH + "\n"
INIT = "git init -q . && git commit -q --allow-empty -m 1"
# A repository whose settings run a program: each `git status` runs fsmonitor.
CONFIG = f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "{TOUCH}; false"\n'
BARE = CONFIG + "\tworktree = %W/src\n"
REF = "ref: refs/heads/master\n"
SUBMODULE = ("git init -q ../sub-origin && git -C ../sub-origin commit -q --allow-empty -m 1 && "
             f"{INIT} && git -c protocol.file.allow=always submodule --quiet add ../sub-origin sub"
             " && git commit -q -m 2")
# A project whose tests run no program of the payload, and its script "test" as npm has it.
PACKAGE = '{"name": "a", "version": "1.0.0", "scripts": {%s}}\n'
TESTED = "echo '" + PACKAGE.strip() % '"test": "node -e 0"' + "' > package.json"
FILTER = '[filter "tidy"]\n\tclean = ./tidy\n'


WHEEL = ("/usr/bin/python3 -m pip wheel -q --no-deps --no-index --no-build-isolation "
         "--disable-pip-version-check -w out .")


@dataclasses.dataclass(frozen=True)
class Payload:
    kind: int
    name: str
    plant: dict
    run: str
    before: str = ""
    home: dict = dataclasses.field(default_factory=dict)
    # The planted files that run the canary, if others only help.
    lead: tuple = ()

    @property
    def paths(self):
        return self.lead or tuple(self.plant)


def bare(folder, config=CONFIG):
    """A directory that git treats as a repository."""
    files = {"HEAD": REF, "config": config, "objects/.keep": "", "refs/.keep": ""}
    return {os.path.normpath(f"{folder}/{name}"): text for name, text in files.items()}


PAYLOADS = [
    Payload(1, "hook", {".git/hooks/pre-commit": SCRIPT}, "git commit -q --allow-empty -m 2", INIT),
    Payload(2, "config", {".git/config": CONFIG}, "git status", INIT),
    Payload(2, "commondir", {".git/commondir": "../evil\n", **bare("evil")}, "git status", INIT,
            lead=(".git/commondir",)),
    Payload(2, "todo", {".git/rebase-merge/git-rebase-todo": f"exec {TOUCH}\n"},
            "git rebase --continue",
            INIT + " && git commit -q --allow-empty -m 2 && "
            "GIT_SEQUENCE_EDITOR='yes break | head -n 2 >' git rebase -q -i HEAD~1"),
    Payload(3, "config", {".git/config.worktree": CONFIG}, "git status",
            INIT + " && git config extensions.worktreeConfig true"),
    Payload(4, "attributes", {".git/info/attributes": "* filter=tidy\n", "tidy": SCRIPT, "a": "a"},
            "git add a", INIT, {".gitconfig": FILTER}, (".git/info/attributes",)),
    Payload(5, "config", {".git/modules/sub/config": CONFIG + "\tworktree = ../../../sub\n"},
            "git -C sub status", SUBMODULE),
    Payload(6, "hook", {".git/modules/sub/hooks/pre-commit": SCRIPT},
            "git -C sub commit -q --allow-empty -m 3", SUBMODULE),
    Payload(7, "config", {".git/worktrees/side/config.worktree": CONFIG}, "git -C side status",
            INIT + " && git config extensions.worktreeConfig true && git worktree add -q side"),
    Payload(7, "commondir", {".git/worktrees/side/commondir": "../../../evil\n", **bare("evil")},
            "git -C side status", INIT + " && git worktree add -q side",
            lead=(".git/worktrees/side/commondir",)),
    Payload(8, "file", {"src/.git": "gitdir: ../.git/refs/remotes/evil\n",
                        **bare(".git/refs/remotes/evil", BARE)},
            "git -C src status", INIT, lead=("src/.git",)),
    Payload(8, "elsewhere", {"src/.git": "gitdir: ../evil\n", **bare("evil", BARE)},
            "git -C src status", INIT, lead=("src/.git",)),
    Payload(9, "nested", bare("src/.git"), "git -C src status", INIT, lead=("src/.git/HEAD",)),
    Payload(10, "bare", bare("src", BARE), "git -C src status", INIT, lead=("src/HEAD",)),
    Payload(10, "root", {".git/HEAD": "garbage\n",
                         **bare(".", CONFIG + "\tworktree = %W\n")},
            "git status", INIT, lead=("HEAD",)),
    # The person permits the transport, for example for a repository in a container.
    Payload(11, "url", {".gitmodules": '[submodule "sub"]\n\tpath = sub\n\turl = ext::touch %C\n'},
            "git submodule --quiet sync; git submodule --quiet update --remote; true", SUBMODULE,
            {".gitconfig": '[protocol "ext"]\n\tallow = always\n'}),
    Payload(12, "attributes", {".gitattributes": "* filter=tidy\n", "tidy": SCRIPT, "a": "a"},
            "git add a", INIT, {".gitconfig": FILTER}, (".gitattributes",)),
    Payload(13, "hooks", {".githooks/pre-commit": SCRIPT}, "git commit -q --allow-empty -m 2",
            INIT + " && git config core.hooksPath .githooks"),
    Payload(14, "hg", {".hg/hgrc": f"[hooks]\npre-status = {TOUCH}\n"}, "hg status", "hg init"),
    Payload(15, "direnv", {".envrc": TOUCH + "\n"}, "direnv exec . true",
            home={".config/direnv/direnv.toml": '[whitelist]\nprefix = ["%W"]\n'}),
    # As the plug-in dotenv of oh-my-zsh does.
    Payload(16, "zsh", {".env": TOUCH + "\n"}, "zsh -ic 'cd .'",
            home={".zshrc": "chpwd() { [[ ! -f .env ]] || source ./.env }\n"}),
    Payload(24, "zsh", {".zshrc": TOUCH + "\n"}, "ZDOTDIR=. zsh -ic true"),
    Payload(29, "vim", {".exrc": f"silent !{TOUCH}\n"},
            "vim.tiny --not-a-term -T dumb +q </dev/null",
            home={".vimrc": "set exrc\n"}),
    Payload(42, "make", {"Makefile": f"all:\n\t{TOUCH}\n"}, "make"),
    Payload(42, "gnu", {"GNUmakefile": f"all:\n\t{TOUCH}\n"}, "make",
            "echo all: > Makefile"),
    Payload(42, "include", {"rules.mk": f"$(shell {TOUCH})\n"}, "make",
            "printf 'include *.mk\\nall:\\n' > Makefile && touch a.mk"),
    Payload(45, "node", {"node_modules/left/index.js": "require('fs').writeFileSync('%C', '')\n"},
            "node -e 'require(\"left\")'"),
    Payload(46, "pytest", {"conftest.py": "open('%C', 'w')\n"},
            "/usr/bin/python3 -m pytest -q -p no:cacheprovider; true"),
    Payload(46, "setup", {"setup.py": "open('%C', 'w')\n"}, f"{WHEEL}; true"),
    Payload(46, "backend",
            {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "evil"\n'
                               'backend-path = ["."]\n',
             "evil.py": "open('%C', 'w')\n"}, f"{WHEEL}; true", lead=("pyproject.toml",)),
    Payload(46, "site", {"sitecustomize.py": "open('%C', 'w')\n"},
            "PYTHONPATH=. /usr/bin/python3 -c pass"),
    Payload(47, "venv", {".venv/bin/activate": TOUCH + "\n"}, ". .venv/bin/activate"),
    Payload(48, "cargo", {".cargo/config.toml": '[build]\nrustc-wrapper = "./wrap"\n',
                          "wrap": SCRIPT + 'exec "$@"\n'},
            "cargo check -q --offline; true",
            "cargo init -q --lib --vcs none --name a .", lead=(".cargo/config.toml",)),
    Payload(48, "build", {"build.rs": 'fn main() { std::fs::write("%C", "").unwrap() }\n'},
            "cargo check -q --offline", "cargo init -q --lib --vcs none --name a ."),
    Payload(49, "wrapper", {"gradlew": SCRIPT}, "sh ./gradlew build"),
    Payload(50, "wrapper", {"mvnw": SCRIPT}, "sh ./mvnw package"),
    Payload(50, "ant", {"build.xml": "<project default='a'><target name='a'><touch file='%C'/>"
                                     "</target></project>\n"}, "ant -q"),
    Payload(51, "cmake", {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.18)\n"
                                            "project(a NONE)\nfile(WRITE %C a)\n"},
            "cmake -S . -B build"),
    Payload(51, "presets",
            {"CMakePresets.json": '{"version": 2, "configurePresets": [{"name": "a", "generator": '
                                  '"Ninja", "binaryDir": "build", "cacheVariables": {"CMAKE_PROJECT_INCLUDE": '
                                  '"%W/evil"}}]}\n',
             "evil": "file(WRITE %C a)\n"}, "cmake --preset a",
            "printf 'cmake_minimum_required(VERSION 3.18)\\nproject(a NONE)\\n' > CMakeLists.txt",
            lead=("CMakePresets.json",)),
    Payload(51, "ninja", {"build.ninja": "rule a\n  command = touch '%C'\nbuild b: a\n"}, "ninja"),
    Payload(51, "scons", {"SConstruct": "open('%C', 'w')\n"}, "scons -Q"),
    Payload(51, "perl", {"Build.PL": "open my $f, '>', '%C';\n"}, "perl Build.PL"),
    Payload(51, "meson", {"meson.build": "project('a')\nrun_command('touch', '%C', check: true)\n"},
            "meson setup build"),
    Payload(51, "configure", {"configure": SCRIPT}, "sh ./configure"),
    Payload(52, "rake", {"Rakefile": "File.write('%C', '')\ntask :default\n"}, "rake"),
    Payload(52, "bundle", {"Gemfile": "File.write('%C', '')\n"}, "bundle list"),
    Payload(52, "gemspec", {"a.gemspec": "File.write('%C', '')\n"}, "gem build a.gemspec; true"),
    Payload(53, "autoload", {"vendor/autoload.php": "<?php touch('%C');\n"},
            "php -r 'require \"vendor/autoload.php\";'"),
    Payload(53, "composer",
            {"composer.json": '{"repositories": [{"packagist.org": false}],\n'
                              f' "scripts": {{"pre-update-cmd": "{TOUCH}"}}}}\n'},
            "composer -n update"),
    Payload(58, "gdb", {".gdbinit": f"shell {TOUCH}\n"}, "gdb -q -batch",
            home={".gdbinit": "set auto-load safe-path /\n"}),
    Payload(58, "pdb", {".pdbrc": "!open('%C', 'w')\n"},
            "/usr/bin/python3 -m pdb %H/a.py </dev/null; true", home={"a.py": "pass\n"}),
    Payload(60, "desktop", {"a.desktop": "[Desktop Entry]\nType=Application\nName=a\n"
                                         "Exec=touch '%C'\n"},
            "gio launch ./a.desktop"),
]

# Debian's npm has several hundred packages; packages of nodejs from other archives contain it.
# Where it is not installed, these kinds have files only.
NPM = [
    Payload(43, "script", {"package.json": PACKAGE % f'"test": "{TOUCH}"'}, "npm test --silent"),
    Payload(43, "prepare", {"package.json": PACKAGE % f'"prepare": "{TOUCH}"'},
            "npm install --offline --silent"),
    Payload(44, "shell", {".npmrc": "script-shell=./evil\n", "evil": SCRIPT}, "npm test --silent",
            TESTED, lead=(".npmrc",)),
    Payload(44, "options", {".npmrc": "node-options=--require=./evil.js\n",
                            "evil.js": "require('fs').writeFileSync('%C', '')\n"},
            "npm test --silent", TESTED, lead=(".npmrc",)),
]
NPM_FILES = {
    43: ["package.json", "binding.gyp"],
    44: [".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnp.cjs", ".yarn/releases/yarn-4.0.0.cjs"],
}

# Files of the kinds without a program above: what it runs is known from its manual only.
FILES = {
    17: [".tool-versions", "mise.toml", ".mise.local.toml", ".config/mise/conf.d/a.toml"],
    18: [".asdfrc"],
    19: [".nvmrc", ".python-version"],
    20: ["devbox.json", ".devbox/gen/scripts/.hooks.sh"],
    21: ["flake.nix", "shell.nix", ".direnv/flake-profile.rc"],
    22: [".autoenv.zsh", ".autoenv", ".in"],
    23: ["Justfile", "justfile", ".justfile", "Taskfile.yml"],
    25: [".vscode/tasks.json", ".vscode/settings.json", ".vscode/extensions/a/package.json"],
    26: ["a.code-workspace"],
    27: [".idea/workspace.xml", ".idea/runConfigurations/a.xml", ".run/a.run.xml"],
    28: [".fleet/run.json"],
    30: [".dir-locals.el"],
    31: ["a.sublime-project"],
    32: [".zed/settings.json", ".zed/tasks.json"],
    33: [".editorconfig", "eslint.config.mjs", ".prettierrc.js"],
    34: [".devcontainer/devcontainer.json", ".devcontainer.json"],
    35: [".cursor/hooks.json", ".cursor/mcp.json", ".windsurf/hooks.json"],
    36: [".claude/settings.json", ".claude/hooks/a.sh", ".claude/commands/a.md",
         ".claude/worktrees/a/.claude/settings.json"],
    37: [".mcp.json"],
    38: ["CLAUDE.md", "AGENTS.md", "GEMINI.md", ".github/copilot-instructions.md"],
    39: [".codex/config.toml", ".gemini/settings.json", ".opencode/plugins/a.ts", "opencode.json",
         ".aider.conf.yml"],
    40: [".github/hooks/a.json"],
    41: [".sbxenv.yaml", ".cplt.toml", ".broodbox.yaml"],
    54: ["mix.exs", "rebar.config"],
    55: ["go.mod", "generate.go"],
    56: ["Dockerfile", "compose.yml", "docker-compose.override.yml"],
    57: ["Vagrantfile", "main.tf", ".terraform/providers/a"],
    59: [".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile"],
}

if os.path.exists("/usr/bin/npm") or os.path.exists("/usr/local/bin/npm"):
    PAYLOADS += NPM
else:
    FILES |= NPM_FILES

EVERY = PAYLOADS + [Payload(kind, "files", dict.fromkeys(paths, "planted\n"), "true")
                    for kind, paths in FILES.items()]

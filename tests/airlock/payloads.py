# SPDX-License-Identifier: Apache-2.0
"""For each kind of data/airlock/autorun.list what an attacker writes, and what a person then types.

A payload has PLANT, the files that come from a sandbox, and RUN, a command of the host in the same
folder. Its program creates the file CANARY. BEFORE is what the person did earlier, HOME the files
of the person's own settings. `%C` stands for the path of the canary, `%W` for the folder and `%H`
for that of the settings.

Kinds of programs that Debian does not have, or only as part of several hundred MB or packages (npm,
go, nix, emacs, gradle, maven, elixir, docker, vagrant, terraform), have files only: FILES.
"""
import dataclasses
import os

TOUCH = "touch '%C'"
SCRIPT = "#!/bin/sh\n" + TOUCH + "\n"
INIT = "git init -q . && git commit -q --allow-empty -m 1"
# A repository whose settings run a program: fsmonitor is asked by each `git status`.
CONFIG = f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = "{TOUCH}; false"\n'
BARE = CONFIG + "\tworktree = %W/src\n"
REF = "ref: refs/heads/master\n"
SUBMODULE = ("git init -q ../sub-origin && git -C ../sub-origin commit -q --allow-empty -m 1 && "
             f"{INIT} && git -c protocol.file.allow=always submodule --quiet add ../sub-origin sub"
             " && git commit -q -m 2")
FILTER = '[filter "tidy"]\n\tclean = ./tidy\n'


@dataclasses.dataclass(frozen=True)
class Payload:
    kind: int
    name: str
    plant: dict
    run: str
    before: str = ""
    home: dict = dataclasses.field(default_factory=dict)
    # The planted files that lead to the canary, if others only help.
    lead: tuple = ()

    @property
    def paths(self):
        return self.lead or tuple(self.plant)


def bare(folder, config=CONFIG):
    """A folder that git takes for a repository."""
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
    Payload(45, "node", {"node_modules/left/index.js": "require('fs').writeFileSync('%C', '')\n"},
            "node -e 'require(\"left\")'"),
    Payload(46, "pytest", {"conftest.py": "open('%C', 'w')\n"},
            "/usr/bin/python3 -m pytest -q -p no:cacheprovider; true"),
    Payload(47, "venv", {".venv/bin/activate": TOUCH + "\n"}, ". .venv/bin/activate"),
    Payload(48, "cargo", {".cargo/config.toml": '[build]\nrustc-wrapper = "./wrap"\n',
                          "wrap": SCRIPT + 'exec "$@"\n'},
            "cargo check -q --offline; true",
            "cargo init -q --lib --vcs none --name a .", lead=(".cargo/config.toml",)),
    Payload(49, "wrapper", {"gradlew": SCRIPT}, "sh ./gradlew build"),
    Payload(50, "wrapper", {"mvnw": SCRIPT}, "sh ./mvnw package"),
    Payload(51, "meson", {"meson.build": "project('a')\nrun_command('touch', '%C', check: true)\n"},
            "meson setup build"),
    Payload(51, "configure", {"configure": SCRIPT}, "sh ./configure"),
    Payload(52, "rake", {"Rakefile": "File.write('%C', '')\ntask :default\n"}, "rake"),
    Payload(52, "bundle", {"Gemfile": "File.write('%C', '')\n"}, "bundle list"),
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

# Files of the kinds without a program above: what it runs is known from its manual only.
FILES = {
    11: [".gitmodules"],
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
    43: ["package.json", "binding.gyp"],
    44: [".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", ".pnp.cjs", ".yarn/releases/yarn-4.0.0.cjs"],
    54: ["mix.exs", "rebar.config"],
    55: ["go.mod", "generate.go"],
    56: ["Dockerfile", "compose.yml", "docker-compose.override.yml"],
    57: ["Vagrantfile", "main.tf", ".terraform/providers/a"],
    59: [".github/workflows/ci.yml", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile"],
}

EVERY = PAYLOADS + [Payload(kind, "files", dict.fromkeys(paths, "planted\n"), "true")
                    for kind, paths in FILES.items()]

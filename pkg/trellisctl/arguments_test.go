package trellisctl

import (
	"bytes"
	"strings"
	"testing"
)

// A mistake in what was typed ends the command, names the mistake and tells where usage is told.
func TestMistypedCommands(t *testing.T) {
	for line, want := range map[string]string{
		"memebers": "trellisctl has no command \"memebers\"; similar: members; see " +
			"`trellisctl --help`",
		"memebers --fleet-kubeconfig f.yaml": `trellisctl has no command "memebers"; similar: members`,
		"rollout stauts deployment/web -n shop": "trellisctl rollout has no command \"stauts\"; similar: status; " +
			"see `trellisctl rollout --help`",
		"deletions confrim --all": `trellisctl deletions has no command "confrim"; similar: confirm`,
		"members edge1": "trellisctl members takes flags only, and was given \"edge1\"; see " +
			"`trellisctl members --help`",
		"members --fleet f.yaml": "unknown flag: --fleet; see `trellisctl members --help`",
		"members -o yaml":        `--output "yaml": must be wide, or left out; see`,
		"explain": "name one object as TYPE/NAME, for example `trellisctl explain " +
			"deployment/nginx --project demo --shoot fleet`",
		"rollout status a b": "name one object as TYPE/NAME, for example `trellisctl rollout " +
			"status deployment/web -n shop",
		"drain": "name one member, for example `trellisctl drain edge1 --project " +
			"demo --shoot fleet`",
		"ls nodes":           "trellisctl ls takes one of projects, shoots, seeds, gardens",
		"ls --watch":         "say which, for example `trellisctl ls shoots`; see `trellisctl ls --help`",
		"ls -o yaml":         "say which, for example `trellisctl ls shoots`",
		"ls shoots -o xml":   "must be one of wide, name, yaml, json",
		"ls shoots -l a=b=c": `--selector "a=b=c": `,
		"ls gd -w":           "gardens are those of the configuration: leave out",
		"target shoot":       "name one shoot, for example `trellisctl target shoot member1`",
		"target shoot a --shoot b": `shoot "a" is given, and --shoot "b": leave out one of them; see ` +
			"`trellisctl target shoot --help`",
		"target shot member1":    `trellisctl target has no command "shot"; similar: shoot`,
		"target unset shoots":    "takes one of garden, project, seed, shoot, control-plane",
		"target x --project y":   `"x" is given, and flags that say what to target: leave out one of them`,
		"describe nodes":         `trellisctl describe has no command "nodes"`,
		"kubectl-env":            "trellisctl kubectl-env takes one of bash, zsh, fish, powershell",
		"plan":                   "which documents? Add -f FILE",
		"plan -f nothing -o xml": `--output "xml": must be text, json or yaml`,
		"plan -f nothing --deletion-budget-percent -1": "percent",
	} {
		root := NewCommand()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(strings.Fields(line))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", line, err, want)
		}
	}
}

func TestCommandsForOthersShowHelp(t *testing.T) {
	for line, want := range map[string]string{
		"": "\nMembers of a fleet:\n", "rollout": "\nAvailable Commands:\n",
	} {
		root := NewCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(strings.Fields(line))
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), want) ||
			strings.Contains(out.String(), "Additional Commands:") {
			t.Errorf("%q: got error %v and\n%s", line, err, &out)
		}
	}
}

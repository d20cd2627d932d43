package trellisctl

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

// parsed finds the command of a call, and has it check its flags and arguments, without running it.
func parsed(arguments []string) (*cobra.Command, error) {
	root := NewCommand()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	command, rest, err := root.Find(arguments)
	if err != nil {
		return nil, err
	}
	command.InitDefaultHelpFlag()
	if err := command.ParseFlags(rest); err != nil {
		return nil, err
	}
	return command, command.ValidateArgs(command.Flags().Args())
}

// Every command that people see has examples, at least one of them about itself, and all are accepted.
func TestExamplesOfAllCommands(t *testing.T) {
	for _, command := range reference.All(NewCommand()) {
		path := command.CommandPath()
		calls, err := reference.Invocations(command.Example)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		own := false
		for _, call := range calls {
			found, err := parsed(call)
			if err != nil {
				t.Errorf("%s: trellisctl %s: %v", path, strings.Join(call, " "), err)
				continue
			}
			own = own || found.CommandPath() == path || strings.HasPrefix(found.CommandPath(), path+" ")
		}
		if !own {
			t.Errorf("%s has no example of itself: %q", path, command.Example)
		}
	}
}

// What the documentation shows is accepted, too.
func TestExamplesOfTheDocs(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := reference.InvocationsOfPage(string(text))
		if err != nil {
			t.Errorf("%s: %v", page, err)
		}
		for _, call := range calls {
			count++
			if _, err := parsed(call); err != nil {
				t.Errorf("%s: trellisctl %s: %v", page, strings.Join(call, " "), err)
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d calls were found", count)
	}
}

// The test of examples finds what it is there to find.
func TestInvocations(t *testing.T) {
	for line, want := range map[string]string{
		"trellisctl ls": "ls", `eval "$(trellisctl rc bash)"`: "rc bash", "bin/trellisctl ls  # all": "ls",
		"kubectl get pp | trellisctl plan -f - && trellisctl ls | head": "plan -f -, ls",
		"echo 'trellisctl rc fish | source' >> f":                       "rc fish",
		"trellisctl join a \\\n  --zones a,b":                           "join a --zones a,b",
		"kubectl, trellisctl, GitOps":                                   "",
		"KUBE_EDITOR=x trellisctl edit shoot":                           "edit shoot",
		`trellisctl create shoot "a"`:                                   "error", "mytrellisctl-trellisctl ls": "error",
	} {
		calls, err := reference.Invocations(line)
		texts := make([]string, len(calls))
		for i, call := range calls {
			texts[i] = strings.Join(call, " ")
		}
		got := strings.Join(texts, ", ")
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: got %q, %v", line, got, err)
		}
	}
	for _, call := range []string{
		"ls --no-such-flag", "ls nodes", "no-such-command", "scale shoot a b c", "exec web-0 date",
	} {
		if _, err := parsed(strings.Fields(call)); err == nil {
			t.Errorf("trellisctl %s is accepted", call)
		}
	}
}

// Names of what there is are completed; new names cannot be.
func TestNamesAreCompleted(t *testing.T) {
	const fresh = "trellisctl create shoot, trellisctl join, trellisctl register"
	names := regexp.MustCompile(`\[?\bNAME\b\]?|\bPOOL\b`)
	for _, command := range reference.All(NewCommand()) {
		_, arguments, _ := strings.Cut(command.Use, " ")
		if !names.MatchString(arguments) || command.Name() == "get" || strings.Contains(arguments, "TYPE/NAME") {
			continue // What types a cluster serves, only its API knows.
		}
		isFresh := slices.Contains(strings.Split(fresh, ", "), command.CommandPath())
		if completes := command.ValidArgsFunction != nil; completes == isFresh {
			t.Errorf("%s %s: arguments are completed: %t", command.CommandPath(), arguments, completes)
		}
	}
}

func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if out, err := commandLine(t, "man "+dir); err != nil || !strings.Contains(out, "into "+dir) {
		t.Fatalf("got %q, %v", out, err)
	}
	for _, command := range reference.All(NewCommand()) {
		name := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

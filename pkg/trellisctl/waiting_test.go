package trellisctl

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

// --wait is a switch, and the durations that it took once are still understood, and told how to write now.
func TestWaitIsASwitch(t *testing.T) {
	const usual = 30 * time.Minute
	for line, want := range map[string]struct {
		wait    bool
		timeout time.Duration
		// told is a part of what is told, problem of the error.
		told, problem string
	}{
		"":                         {timeout: usual},
		"--wait":                   {wait: true, timeout: usual},
		"--wait=true":              {wait: true, timeout: usual},
		"--wait=false":             {timeout: usual},
		"--wait --timeout 5m":      {wait: true, timeout: 5 * time.Minute},
		"--timeout=5m":             {timeout: 5 * time.Minute},
		"--wait=5m":                {wait: true, timeout: 5 * time.Minute, told: "write --wait --timeout 5m\n"},
		"--wait 1h30m":             {wait: true, timeout: 90 * time.Minute, told: "write --wait --timeout 1h30m\n"},
		"--wait=5m --timeout 9m":   {wait: true, timeout: 9 * time.Minute, told: "write --wait --timeout 5m\n"},
		"--wait=0":                 {timeout: usual, told: "write --wait=false\n"},
		"--wait 0":                 {timeout: usual, told: "write --wait=false\n"},
		"--wait=5":                 {problem: "for example --wait --timeout 5m"},
		"--wait=long":              {problem: "for example --wait --timeout 5m"},
		"--wait=-5m":               {problem: "write --wait --timeout 5m, or --wait=false"},
		"--wait --timeout 0":       {problem: "must be more than 0"},
		"--wait --timeout -1m":     {problem: "must be more than 0"},
		"--timeout five --wait":    {problem: "must be a duration, for example 90s"},
		"--wait --timeout=99999h9": {problem: "must be a duration"},
	} {
		var w waiting
		var told bytes.Buffer
		command := &cobra.Command{Use: "test", RunE: func(*cobra.Command, []string) error { return nil }}
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetErr(&told)
		w.flags(command)
		command.SetArgs(Arguments(strings.Fields(line)))
		err := command.Execute()
		switch {
		case want.problem != "":
			if err == nil || !strings.Contains(err.Error(), want.problem) {
				t.Errorf("%s: got error %v, want %s", line, err, want.problem)
			}
		case err != nil || w != waiting{want.wait, want.timeout}:
			t.Errorf("%s: got %+v, %v", line, w, err)
		case !strings.HasSuffix(told.String(), want.told) || (want.told == "") != (told.Len() == 0):
			t.Errorf("%s: got told %q", line, told.String())
		}
	}
}

// All commands that wait have the same two flags, with the same meaning.
func TestWaitMeansTheSameEverywhere(t *testing.T) {
	var waits []string
	for _, command := range reference.All(NewCommand()) {
		flag := command.Flags().Lookup(waitFlagName)
		if flag == nil {
			continue
		}
		waits = append(waits, strings.TrimPrefix(command.CommandPath(), "trellisctl "))
		timeout := command.Flags().Lookup("timeout")
		if flag.Value.Type() != "bool" || flag.NoOptDefVal != "true" || timeout == nil ||
			timeout.Value.Type() != "duration" {
			t.Errorf("%s: got %+v, %+v", command.CommandPath(), flag, timeout)
		}
		command.SetErr(&bytes.Buffer{})
		if err := command.ParseFlags([]string{"--wait=7m"}); err != nil || flag.Value.String() != "true" ||
			timeout.Value.String() != "7m0s" {
			t.Errorf("%s: got %s, %v, %v", command.CommandPath(), flag.Value, timeout, err)
		}
	}
	for _, name := range []string{
		"join", "unjoin", "drain", "hibernate", "hibernate shoot", "wakeup shoot", "create shoot", "upgrade shoot",
		"rotate ca", "rotate workers", "rotate credentials", "rotate ssh-keypair", "rotate serviceaccount-key",
		"rotate etcd-encryption-key", "reconcile shoot", "retry shoot", "maintain shoot", "delete shoot", "edit shoot",
		"scale shoot",
	} {
		if !slices.Contains(waits, name) {
			t.Errorf("%s does not wait: %v", name, waits)
		}
	}
}

// Those that waited by themselves still do, and do not when they are told so.
func TestDefaultsOfWaiting(t *testing.T) {
	for line, want := range map[string]time.Duration{
		"join": 2 * time.Minute, "unjoin": 5 * time.Minute, "drain": 10 * time.Minute, "create shoot": 0,
	} {
		for _, argument := range []string{"", "--wait=false"} {
			command, _, err := NewCommand().Find(strings.Fields(line))
			if err != nil {
				t.Fatal(err)
			}
			if err := command.ParseFlags(strings.Fields(argument)); err != nil {
				t.Fatal(err)
			}
			flag, ok := command.Flags().Lookup(waitFlagName).Value.(*waitFlag)
			expected := want
			if argument != "" {
				expected = 0
			}
			if !ok || flag.atMost() != expected {
				t.Errorf("%s %s: got %+v, want %s", line, argument, flag, expected)
			}
		}
	}
}

// Only what was the duration of --wait changes its place.
func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "",
		"unjoin edge1 --wait 0":        "unjoin edge1 --wait= 0",
		"drain --wait 5m edge1":        "drain --wait= 5m edge1",
		"hibernate shoot --wait one":   "hibernate shoot --wait one",
		"hibernate --wait":             "hibernate --wait",
		"wait shoot 5m":                "wait shoot 5m",
		"hibernate shoot 5m --wait":    "hibernate shoot 5m --wait",
		"hibernate --wait --timeout 1": "hibernate --wait --timeout 1",
		"exec web -- sleep --wait 5m":  "exec web -- sleep --wait 5m",
	} {
		if got := strings.Join(Arguments(strings.Fields(line)), " "); got != want {
			t.Errorf("%s: got %s", line, got)
		}
	}
}

// A duration behind --wait that may be a name is neither: the target, which was not meant, would be put to sleep. Where
// it can be no name, it is a duration.
func TestANameBehindWait(t *testing.T) {
	gardensConfigured(t, "gardens: [{name: local, kubeconfig: /k}]")
	const refused = `"5m" behind --wait may be how long to wait, and a name: say --wait --timeout 5m, or the name before`
	for line, isRefused := range map[string]bool{
		"delete shoot --wait 5m":                          true,
		"hibernate shoot --wait 5m":                       true,
		"rotate ca start --wait 5m":                       true,
		"rotate workers --project demo --wait 5m":         true,
		"drain --project demo --wait 5m":                  true,
		"hibernate --wait 5m":                             false,
		"hibernate shoot one --wait 5m":                   false,
		"hibernate shoot --wait 5m one":                   false,
		"hibernate shoot --wait=5m":                       false,
		"hibernate shoot --shoot one --wait 5m":           false,
		"rotate ca start --all --project a --wait 5m":     false,
		"hibernate shoot --wait --timeout 5m":             false,
		"hibernate shoot 5m --wait --timeout 5m":          false,
		"unjoin edge1 --project demo --shoot f --wait 5m": false,
	} {
		root := NewCommand()
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(Arguments(strings.Fields(line)))
		err := root.Execute()
		if err == nil || strings.Contains(err.Error(), refused) != isRefused {
			t.Errorf("%s: got %v, want it refused: %t", line, err, isRefused)
		}
	}
}

func FuzzArguments(f *testing.F) {
	f.Add("drain --wait 5m edge1 -- --wait 1s")
	f.Add("--wait --wait 0 --wait")
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Fields(line)
		got := Arguments(words)
		split := func(words []string) []string {
			return strings.Fields(strings.ReplaceAll(strings.Join(words, " "), "=", " "))
		}
		if !slices.Equal(split(got), split(words)) {
			t.Fatalf("%q became %q", words, got)
		}
		if !slices.Equal(Arguments(got), got) {
			t.Fatalf("%q is changed twice", words)
		}
	})
}

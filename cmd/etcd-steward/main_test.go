package main

import (
	"bytes"
	"strings"
	"testing"
)

// restorable takes the arguments of an etcd-steward that runs, and needs a store among them.
func TestRestorableTakesAllArguments(t *testing.T) {
	run := func(arguments ...string) (string, error) {
		command, output := newCommand(), &bytes.Buffer{}
		command.SetArgs(append([]string{"restorable"}, arguments...))
		command.SetOut(output)
		return output.String(), command.ExecuteContext(t.Context())
	}
	running := []string{
		"--name=etcd-main", "--data-dir=/var/etcd/data", "--restore-to=2026-01-01T12:00:00Z", "--restore-request=one",
	}
	stored := append(running, "--store-provider=Local", "--store-prefix=shoot/main", "--store-bucket="+t.TempDir())
	if output, err := run(stored...); err != nil || output != "" {
		t.Errorf("of an empty store: %q, %v", output, err)
	}
	if _, err := run(running...); err == nil || !strings.Contains(err.Error(), "--store-provider") {
		t.Errorf("without a store: %v", err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What cannot be is refused with the flag's name, what was given, what it may be and an example, and nothing is left of
// the attempt.
func TestWrongFlagsAreRefused(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{"go.mod", "charts/charts.go", "images/kubernetes/go.mod"} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const nodes = "\"--nodes\" flag: has to be a number from 1 to 9, as in `make up NODES=3`"
	for line, want := range map[string]string{
		"up --nodes 12":                    `invalid argument "12" for ` + nodes,
		"up --nodes x":                     `invalid argument "x" for ` + nodes,
		"up --nodes=-1":                    `invalid argument "-1" for ` + nodes,
		"up --phase sead":                  `--phase is "sead", and has to be one of host, build,`,
		"up --kubernetes-version 1.2.3":    `--kubernetes-version is "1.2.3", and has to be one of`,
		"images --kubernetes-version v1.2": `--kubernetes-version is "v1.2", and has to be one of`,
		"up --name Local":                  `--name is "Local", and has to be 1 to 15 lower-case letters,`,
		"up --root " + root + "/charts":    `/charts", and has to be a clone of Trellis`,
	} {
		c := command()
		// A flag that is given twice is what it was given last.
		c.SetArgs(append([]string{"--root", root}, strings.Fields(line)...))
		err := c.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: got %v, want %s", line, err, want)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 {
		t.Errorf("there are %v", entries)
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// tree is a Git tree with these files, whose times are set.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range files {
		at := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if output, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, output)
	}
	setTimes(t, root)
	return root
}

func setTimes(t *testing.T, root string) {
	t.Helper()
	if err := run(root); err != nil {
		t.Fatal(err)
	}
}

func timeOf(t *testing.T, root, path string) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestTimesFollowFromContent(t *testing.T) {
	given := map[string]string{"a/same": "one", "b/other": "one", "b/c/deep": "one"}
	before := tree(t, given)
	given["b/c/deep"] = "two"
	after := tree(t, given)
	for path, equal := range map[string]bool{"a": true, "a/same": true, "b/other": true, "b": false, "b/c": false,
		"b/c/deep": false} {
		if timeOf(t, before, path).Equal(timeOf(t, after, path)) != equal {
			t.Errorf("%s: times %s and %s, want them equal: %t", path, timeOf(t, before, path), timeOf(t, after, path),
				equal)
		}
	}
	if latest := time.Now().Add(-time.Hour); timeOf(t, before, "a/same").After(latest) {
		t.Errorf("%s is too late for the Go command to trust it", timeOf(t, before, "a/same"))
	}
}

// What was changed and not added to Git has another time as well.
func TestTimesFollowFromWhatIsThereNow(t *testing.T) {
	root := tree(t, map[string]string{"file": "one", "gone": "one"})
	if output, err := exec.Command("git", "-C", root, "add", ".").CombinedOutput(); err != nil {
		t.Fatalf("git add: %v: %s", err, output)
	}
	before := timeOf(t, root, "file")
	if err := os.WriteFile(filepath.Join(root, "file"), []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "gone")); err != nil {
		t.Fatal(err)
	}
	setTimes(t, root)
	if timeOf(t, root, "file").Equal(before) {
		t.Errorf("the time is still %s", before)
	}
}

// A link is another one in each clone, while what it points to keeps the time that it has.
func TestTimesOfLinksFollowFromTheirTargets(t *testing.T) {
	link := func(target string) (time.Time, time.Time) {
		folder := t.TempDir()
		content := filepath.Join(folder, target)
		if err := os.WriteFile(content, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(folder, "link")
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
		before := timeOf(t, folder, target)
		if err := setLinks(folder); err != nil {
			t.Fatal(err)
		}
		if after := timeOf(t, folder, target); !after.Equal(before) {
			t.Errorf("the time of what the link points to was %s, and is %s", before, after)
		}
		info, err := os.Lstat(at)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime(), before
	}
	one, written := link("one")
	again, _ := link("one")
	other, _ := link("other")
	if !one.Equal(again) || one.Equal(other) || !one.Before(written) {
		t.Errorf("times of two links to the same: %s and %s, of one to another: %s", one, again, other)
	}
	if err := setLinks(filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

func TestNotATreeOfGit(t *testing.T) {
	t.Setenv("GIT_CEILING_DIRECTORIES", os.TempDir())
	if err := run(t.TempDir()); err == nil {
		t.Error("no error for a folder that is no Git tree")
	}
}

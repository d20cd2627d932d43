package images

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// sharedAt opens a shared folder below dir.
func sharedAt(t *testing.T, dir string) *sharedFolder {
	t.Helper()
	s, err := openShared(filepath.Join(dir, "trellis"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func writeTestFile(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%s holds %q (%v), want %q", path, data, err, want)
	}
}

// What one build keeps, another one takes, with its mode and time; a change of the copy changes nothing in the folder.
func TestWhatIsKeptIsTaken(t *testing.T) {
	dir := t.TempDir()
	made := []string{
		writeTestFile(t, filepath.Join(dir, "one/program"), "program", 0o755),
		writeTestFile(t, filepath.Join(dir, "one/archive"), "archive", 0o644),
	}
	built := time.Now().Add(-time.Hour)
	if err := os.Chtimes(made[0], built, built); err != nil {
		t.Fatal(err)
	}
	if err := sharedAt(t, dir).keep("key", made...); err != nil {
		t.Fatal(err)
	}
	for _, clone := range []string{"two", "three"} {
		target := filepath.Join(dir, clone)
		if err := os.Mkdir(target, 0o755); err != nil {
			t.Fatal(err)
		}
		if taken, err := sharedAt(t, dir).take("key", target); err != nil || !taken {
			t.Fatalf("taken %v, %v", taken, err)
		}
		wantContent(t, filepath.Join(target, "program"), "program")
		wantContent(t, filepath.Join(target, "archive"), "archive")
		info, err := os.Stat(filepath.Join(target, "program"))
		if err != nil || info.Mode() != 0o755 || !info.ModTime().Equal(built) {
			t.Errorf("the program is %v (%v), want one of %s", info, err, built)
		}
		writeTestFile(t, filepath.Join(target, "program"), "changed", 0o755)
	}
	if taken, err := sharedAt(t, dir).take("another key", dir); err != nil || taken {
		t.Errorf("what nobody kept is taken: %v, %v", taken, err)
	}
}

// An entry that is not what was kept is not taken, not even in parts, and kept anew by who makes it then.
func TestADamagedEntryIsMadeAnew(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, entry string){
		"another byte": func(t *testing.T, entry string) {
			writeTestFile(t, filepath.Join(entry, "second"), "Second", 0o755)
		},
		"cut short": func(t *testing.T, entry string) {
			writeTestFile(t, filepath.Join(entry, "second"), "sec", 0o755)
		},
		"without a file": func(t *testing.T, entry string) {
			if err := os.Remove(filepath.Join(entry, "second")); err != nil {
				t.Fatal(err)
			}
		},
		"without its list": func(t *testing.T, entry string) {
			if err := os.Remove(filepath.Join(entry, sharedList)); err != nil {
				t.Fatal(err)
			}
		},
		"half a list": func(t *testing.T, entry string) {
			writeTestFile(t, filepath.Join(entry, sharedList), `[{"name":"fir`, 0o600)
		},
		"an empty list": func(t *testing.T, entry string) {
			writeTestFile(t, filepath.Join(entry, sharedList), `[]`, 0o600)
		},
		"a file from elsewhere": func(t *testing.T, entry string) {
			writeTestFile(t, filepath.Join(entry, sharedList), `[{"name":"../x","mode":493,"sha256":""}]`, 0o600)
		},
		"a link to elsewhere": func(t *testing.T, entry string) {
			path := filepath.Join(entry, "second")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			outside := writeTestFile(t, filepath.Join(t.TempDir(), "second"), "second", 0o755)
			if err := os.Symlink(outside, path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := sharedAt(t, dir)
			keep := func() {
				if err := s.keep("key", writeTestFile(t, filepath.Join(dir, "first"), "first", 0o755),
					writeTestFile(t, filepath.Join(dir, "second"), "second", 0o755)); err != nil {
					t.Fatal(err)
				}
			}
			keep()
			damage(t, filepath.Join(dir, "trellis", sharedEntries, "key"))
			target := t.TempDir()
			if taken, err := s.take("key", target); err == nil || taken {
				t.Errorf("a damaged entry is taken: %v, %v", taken, err)
			}
			if left, err := os.ReadDir(target); err != nil || len(left) > 0 {
				t.Errorf("%v of it are taken (%v)", left, err)
			}
			keep()
			if taken, err := s.take("key", target); err != nil || !taken {
				t.Errorf("it is not kept anew: %v, %v", taken, err)
			}
		})
	}
}

// Builds side by side keep and take the same entries, while others remove them: what is taken is always whole.
func TestBuildsSideBySide(t *testing.T) {
	dir := t.TempDir()
	content := strings.Repeat("program", 1<<12)
	made := writeTestFile(t, filepath.Join(dir, "made/program"), content, 0o755)
	const builds, rounds = 6, 30
	var group sync.WaitGroup
	var mutex sync.Mutex
	taken := 0
	for range builds {
		s, target := sharedAt(t, dir), t.TempDir()
		group.Go(func() {
			for round := range rounds {
				if err := s.keep("key", made); err != nil {
					t.Errorf("keeping: %v", err)
				}
				// An error is that the entry was removed meanwhile.
				if ok, err := s.take("key", target); err == nil && ok {
					mutex.Lock()
					taken++
					mutex.Unlock()
					wantContent(t, filepath.Join(target, "program"), content)
				}
				if round%5 == 4 {
					if err := s.remove("key"); err != nil {
						t.Errorf("removing: %v", err)
					}
				}
			}
		})
	}
	group.Wait()
	if taken == 0 {
		t.Error("nothing was ever taken")
	}
	left, err := filepath.Glob(filepath.Join(dir, "trellis", sharedEntries, unfinished+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q were left (%v)", left, err)
	}
}

// What nobody took for 14 days is forgotten, and what a killed build left after a day. Taking makes an entry young.
func TestWhatNobodyTakesIsForgotten(t *testing.T) {
	const day = 24 * time.Hour
	dir := t.TempDir()
	s := sharedAt(t, dir)
	program := writeTestFile(t, filepath.Join(dir, "program"), "program", 0o755)
	age := func(name string, age time.Duration) {
		then := time.Now().Add(-age)
		if err := s.root.Chtimes(name, then, then); err != nil {
			t.Fatal(err)
		}
	}
	for name, days := range map[string]time.Duration{"unused": 15, "rarely used": 13, "used": 13} {
		if err := s.keep(name, program); err != nil {
			t.Fatal(err)
		}
		age(name, days*day)
	}
	for name, hours := range map[string]time.Duration{"killed": 25, "written": 23} {
		if err := s.root.Mkdir(unfinished+name, 0o700); err != nil {
			t.Fatal(err)
		}
		age(unfinished+name, hours*time.Hour)
	}
	if taken, err := s.take("used", t.TempDir()); err != nil || !taken {
		t.Fatalf("taken %v, %v", taken, err)
	}
	names := func() (names []string) {
		entries, err := os.ReadDir(filepath.Join(dir, "trellis", sharedEntries))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	sharedAt(t, dir)
	if got, want := names(), []string{unfinished + "written", "rarely used", "used"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if err := s.forget(time.Now().Add(10 * day)); err != nil {
		t.Fatal(err)
	}
	if got, want := names(), []string{"used"}; !slices.Equal(got, want) {
		t.Errorf("%q are left later, want %q", got, want)
	}
}

// An attacker who could write the folder would lay programs there that root runs.
func TestAFolderOfOthersIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		open func(t *testing.T, folder string)
		want string
	}{
		"all may write it": {func(t *testing.T, folder string) { chmod(t, folder, 0o777) }, "others may write it"},
		"a group may":      {func(t *testing.T, folder string) { chmod(t, folder, 0o720) }, "others may write it"},
		"it is a link": {func(t *testing.T, folder string) {
			if err := os.Rename(folder, folder+"-elsewhere"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(folder+"-elsewhere", folder); err != nil {
				t.Fatal(err)
			}
		}, "it is a link"},
		"somebody else owns it": {func(t *testing.T, folder string) {
			if os.Geteuid() != 0 {
				t.Skip("only root may give a folder to somebody else; TestOwnership has the same without")
			}
			if err := os.Chown(folder, 65532, 65532); err != nil {
				t.Fatal(err)
			}
		}, "belongs to user 65532"},
	} {
		for _, part := range []string{"trellis", "trellis/" + sharedEntries} {
			t.Run(name+" "+part, func(t *testing.T) {
				dir := t.TempDir()
				sharedAt(t, dir)
				c.open(t, filepath.Join(dir, part))
				_, err := openShared(filepath.Join(dir, "trellis"))
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		}
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// A folder is for nobody but its user.
func TestOwnership(t *testing.T) {
	dir := t.TempDir()
	sharedAt(t, dir)
	info, err := os.Stat(filepath.Join(dir, "trellis"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("a new folder has mode %v, want 0700", info.Mode().Perm())
	}
	if err := ownedOnly(info, os.Geteuid()); err != nil {
		t.Errorf("an own folder is refused: %v", err)
	}
	if err := ownedOnly(info, os.Geteuid()+1); err == nil {
		t.Error("another user's folder is accepted")
	}
}

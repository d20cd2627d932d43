package shell

import (
	"encoding/base64"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hostile are values that a shell could take for something else.
var hostile = []string{
	"", "plain", "two words", "'", "''", "a'b", `\`, `\'`, `'\''`, `a\`, "$(touch hacked)", "`touch hacked`", "$HOME",
	"'; touch hacked; '", "\"; touch hacked; \"", "a\nb", "\n", "\ttab", "!!", "*", "~", "-n", "a;b", "a&b", "a|b", "#a",
	"%s%n", "${IFS}", "‘; touch hacked; ’", "ё", "‛a‚", "');touch hacked;('", "{a,b}", "<(touch hacked)", "\\n",
}

func TestQuoting(t *testing.T) {
	for _, test := range []struct {
		shell       Shell
		value, want string
	}{
		{Bash, `it's \n $x`, `'it'\''s \n $x'`}, {Zsh, `it's \n $x`, `'it'\''s \n $x'`},
		{Fish, `it's \n $x`, `'it\'s \\n $x'`}, {PowerShell, `it's \n $x`, `'it''s \n $x'`},
		{PowerShell, "‘", "([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('4oCY')))"},
	} {
		if got, err := test.shell.Quote(test.value); err != nil || got != test.want {
			t.Errorf("%s: got %s, %v", test.shell, got, err)
		}
	}
	if _, err := Shell("tcsh").Quote("a"); err == nil || !strings.Contains(err.Error(), "choose one of bash") {
		t.Errorf("got %v", err)
	}
}

func TestScripts(t *testing.T) {
	for shell, want := range map[Shell][2]string{
		Bash: {"export A='b';\n", "unset A;\n"}, Zsh: {"export A='b';\n", "unset A;\n"},
		Fish:       {"set -gx A 'b';\n", "set -e A;\n"},
		PowerShell: {"$Env:A = 'b';\n", "Remove-Item -ErrorAction SilentlyContinue Env:A;\n"},
	} {
		set, err := shell.Export("A", "b")
		if err != nil || set != want[0] {
			t.Errorf("%s: got %q, %v", shell, set, err)
		}
		unset, err := shell.Unset("A")
		if err != nil || unset != want[1] {
			t.Errorf("%s: got %q, %v", shell, unset, err)
		}
	}
	for _, name := range []string{"", "1A", "A B", "A;B", "A\n", "Ä", "A=$(x)"} {
		if _, err := Bash.Export(name, ""); err == nil {
			t.Errorf("%q is a variable", name)
		}
		if _, err := Bash.Unset(name); err == nil {
			t.Errorf("%q is a variable", name)
		}
	}
}

// A cloud provider's secret has values that are commands (as in CVE-2025-67508). Shells get them as values.
func TestAttackValuesInShells(t *testing.T) {
	for _, shell := range []Shell{Bash, Zsh, Fish, PowerShell} {
		for _, value := range hostile {
			quoted, err := shell.Quote(value)
			if err != nil {
				t.Fatal(err)
			}
			if got, whole := unquote(shell, quoted); !whole || got != value {
				t.Errorf("%s: %q is %s, which is %q", shell, value, quoted, got)
			}
		}
		for _, value := range []string{"a\x00b", "\x1b]0;a\a", "a\rb", "\x7f", "\u0085", "\x91; touch hacked; \x92"} {
			if quoted, err := shell.Quote(value); err == nil {
				t.Errorf("%s: %q is %s", shell, value, quoted)
			}
		}
	}
	for _, shell := range []Shell{Bash, Zsh, Fish} {
		inShell(t, shell)
	}
}

// inShell has a shell do what it was given, if there is one; bash has to be there.
func inShell(t *testing.T, shell Shell) {
	t.Helper()
	program, err := exec.LookPath(string(shell))
	if err != nil && shell == Bash {
		t.Fatalf("values are tried in bash, which has to be installed: %v", err)
	}
	if err != nil {
		t.Logf("there is no %s here", shell)
		return
	}
	dir := t.TempDir()
	for _, value := range hostile {
		script, err := shell.Export("VALUE", value)
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), program, "-c", script+`printf '<%s>' "$VALUE"`)
		command.Dir = dir
		got, err := command.CombinedOutput()
		if err != nil || string(got) != "<"+value+">" {
			t.Errorf("%s: %q became %q, %v", shell, value, got, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%s: a value was a command: %v, %v", shell, left, err)
	}
}

// grammar is what one word of quotes looks like, in the manual of each shell.
var grammar = map[Shell]*regexp.Regexp{
	Bash: regexp.MustCompile(`^'[^']*'(?:\\''[^']*')*$`), Zsh: regexp.MustCompile(`^'[^']*'(?:\\''[^']*')*$`),
	Fish:       regexp.MustCompile(`^'(?:[^'\\]|\\['\\])*'$`),
	PowerShell: regexp.MustCompile(`^'(?:[^'\x{80}-\x{10ffff}]|'')*'$`),
}

var encodedValue = regexp.MustCompile(
	`^\(\[Text\.Encoding\]::UTF8\.GetString\(\[Convert\]::FromBase64String\('([A-Za-z0-9+/=]*)'\)\)\)$`)

// unquote is what a shell reads, and whether it is one word.
func unquote(shell Shell, quoted string) (string, bool) {
	if found := encodedValue.FindStringSubmatch(quoted); shell == PowerShell && found != nil {
		value, err := base64.StdEncoding.DecodeString(found[1])
		return string(value), err == nil
	}
	if !grammar[shell].MatchString(quoted) {
		return "", false
	}
	inner := quoted[1 : len(quoted)-1]
	switch shell {
	case Fish:
		return strings.NewReplacer(`\\`, `\`, `\'`, "'").Replace(inner), true
	case PowerShell:
		return strings.ReplaceAll(inner, "''", "'"), true
	}
	return strings.ReplaceAll(inner, `'\''`, "'"), true
}

func FuzzQuote(f *testing.F) {
	for _, value := range hostile {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, shell := range []Shell{Bash, Zsh, Fish, PowerShell} {
			quoted, err := shell.Quote(value)
			if err != nil {
				continue
			}
			if got, whole := unquote(shell, quoted); !whole || got != value {
				t.Errorf("%s: %q is %s, which is %q", shell, value, quoted, got)
			}
		}
	})
}

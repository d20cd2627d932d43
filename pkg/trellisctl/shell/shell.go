// Package shell writes scripts for shells from values that nobody has checked. Whatever a value is, a script that was
// written with this package does nothing but to set variables to it.
package shell

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Shell is one that scripts are written for.
type Shell string

// The shells that are known.
const (
	Bash       Shell = "bash"
	Zsh        Shell = "zsh"
	Fish       Shell = "fish"
	PowerShell Shell = "powershell"
)

// Names lists the shells.
var Names = []string{string(Bash), string(Zsh), string(Fish), string(PowerShell)}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Quote is the value as one word of the shell. Refused are control characters but tabs and line ends, and what is no
// UTF-8: terminals and shells take them for something else, and no credentials have them.
func (s Shell) Quote(value string) (string, error) {
	if !utf8.ValidString(value) {
		return "", fmt.Errorf("%d bytes that are not UTF-8 cannot be given to a shell", len(value))
	}
	if at := strings.IndexFunc(value, control); at >= 0 {
		return "", fmt.Errorf("a value with a control character, at %d, cannot be given to a shell", at)
	}
	switch s {
	case Bash, Zsh:
		return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'", nil
	case Fish:
		// Within quotes, fish knows \\ and \', and takes other backslashes as they are.
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(value) + "'", nil
	case PowerShell:
		return quotePowerShell(value), nil
	}
	return "", fmt.Errorf("shell %q: choose one of %s", s, strings.Join(Names, ", "))
}

// quotePowerShell doubles quotes. PowerShell takes several characters of Unicode for quotes, and on the way into it
// text may be read in another encoding, in which still other bytes are such characters: so what is not ASCII is
// encoded.
func quotePowerShell(value string) string {
	if strings.IndexFunc(value, func(r rune) bool { return r > 0x7e }) < 0 {
		return "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	return "([Text.Encoding]::UTF8.GetString([Convert]::FromBase64String('" +
		base64.StdEncoding.EncodeToString([]byte(value)) + "')))"
}

func control(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || 0x7f <= r && r <= 0x9f
}

// Export sets a variable for the shell and what it starts.
func (s Shell) Export(name, value string) (string, error) {
	if !variable.MatchString(name) {
		return "", fmt.Errorf("%q is no name of a variable", name)
	}
	quoted, err := s.Quote(value)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	switch s {
	case Fish:
		return "set -gx " + name + " " + quoted + ";\n", nil
	case PowerShell:
		return "$Env:" + name + " = " + quoted + ";\n", nil
	}
	return "export " + name + "=" + quoted + ";\n", nil
}

// Unset removes a variable.
func (s Shell) Unset(name string) (string, error) {
	if !variable.MatchString(name) {
		return "", fmt.Errorf("%q is no name of a variable", name)
	}
	switch s {
	case Bash, Zsh:
		return "unset " + name + ";\n", nil
	case Fish:
		return "set -e " + name + ";\n", nil
	case PowerShell:
		return "Remove-Item -ErrorAction SilentlyContinue Env:" + name + ";\n", nil
	}
	return "", fmt.Errorf("shell %q: choose one of %s", s, strings.Join(Names, ", "))
}

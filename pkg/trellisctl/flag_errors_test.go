package trellisctl

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
)

// ofLibraries are words of those that read the values of flags.
var ofLibraries = regexp.MustCompile(`strconv|parse error|time: |ParseBool|ParseInt|invalid argument|invalid syntax`)

// Every flag of every command that does not take any text says what it is called, what it was given, and what it takes.
func TestWrongValuesOfAllFlags(t *testing.T) {
	count := 0
	for _, command := range reference.All(NewCommand()) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			for _, value := range []string{"maybe\u00e4", `a"b`, "99999999999999999999"} {
				err := command.ParseFlags([]string{"--" + flag.Name + "=" + value})
				if err == nil {
					continue // It takes any text, or its command looks at it.
				}
				count++
				text := explainFlag(err).Error()
				if !strings.HasPrefix(text, "--"+flag.Name+" ") || ofLibraries.MatchString(text) ||
					!strings.Contains(text, "must be") && !strings.Contains(text, "is a switch") {
					t.Errorf("%s: got %s", command.CommandPath(), text)
				}
			}
		})
	}
	if count < 100 {
		t.Errorf("only %d values were refused", count)
	}
}

func TestWrongValuesOfFlags(t *testing.T) {
	for line, want := range map[string]string{
		"register edge1 --serve-api=maybe":     `--serve-api "maybe": must be true or false; true may be left out; see`,
		"scale shoot a b --minimum few":        `--minimum "few": must be a whole number, such as 3; see`,
		"scale shoot a b --minimum 9999999999": `--minimum "9999999999": must be a number that is not as large`,
		"members -o yaml":                      `--output "yaml": must be wide, or left out`,
		"kubeconfig --expiration long":         `--expiration "long": must be a duration, for example 90s, 5m or 1h30m`,
		`get pods --members a"b`:               `--members "a\"b": must be a list with commas`,
		"logs web --tail -1":                   `--tail "-1": must be 0 or more`,
		"diagnose --max-size 0":                `--max-size "0": must be 1 or more`,
		"ls shoots --output":                   "--output needs a value: format of the output: wide, name, yaml, json",
		"ls shoots --shoot":                    "--shoot needs a value: shoot",
		"delete shoot a --timeout soon":        `--timeout "soon": must be a duration`,
		"delete shoot a --wait=soon":           `--wait "soon": is a switch; how long to wait is said by --timeout`,
	} {
		_, err := commandLine(t, line)
		if err == nil || !strings.Contains(err.Error(), want) || ofLibraries.MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %s", line, err, want)
		}
	}
}

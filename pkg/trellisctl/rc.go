package trellisctl

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/trellisctl/shell"
)

func (c *cli) rcCommand() *cobra.Command {
	prefix, noCompletion := "t", false
	command := &cobra.Command{
		Use:   "rc bash|zsh|fish|powershell",
		Short: "Print what to run when a shell starts: a session, short names, completion",
		Long: `rc prints a script for the start of a shell. Each shell gets a session of its own, so that targets in one
terminal are not those of another. The short names are, with the prefix t:

  t     trellisctl
  ttv   trellisctl target view
  ttc   trellisctl target --control-plane
  tk    kubectl for the target, as of trellisctl kubectl-env
  tp    tools of its cloud for the target, as of trellisctl provider-env
  tcv   trellisctl config view`,
		Example: `  echo 'eval "$(trellisctl rc bash)"' >> ~/.bashrc
  echo 'trellisctl rc fish | source' >> ~/.config/fish/config.fish`,
		Args: oneOfValidArgs, ValidArgs: shell.Names,
		RunE: func(command *cobra.Command, arguments []string) error {
			script, err := rcScript(shell.Shell(arguments[0]), command.Root().CommandPath(), prefix, rand.Text(),
				!noCompletion)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), script)
			return err
		},
	}
	command.Flags().StringVarP(&prefix, "prefix", "p", prefix, "what short names begin with")
	command.Flags().BoolVar(&noCompletion, "no-completion", false, "leave out completion")
	return command
}

var prefixPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// rcScript is what a shell runs at its start. A session that there is already stays.
func rcScript(sh shell.Shell, program, prefix, session string, completion bool) (string, error) {
	if !prefixPattern.MatchString(prefix) {
		return "", fmt.Errorf("--prefix %q: must be letters and digits, and begin with a letter", prefix)
	}
	export, err := sh.Export(SessionEnv, session)
	if err != nil {
		return "", err
	}
	names := [][2]string{
		{"", program}, {"tv", program + " target view"}, {"tc", program + " target --control-plane"},
		{"cv", program + " config view"},
		{"k", evaluated(sh, program+" kubectl-env "+string(sh))},
		{"p", evaluated(sh, program+" provider-env "+string(sh))},
	}
	var b strings.Builder
	switch sh {
	case shell.Fish:
		fmt.Fprintf(&b, "if not set -q %s; %s end;\n", SessionEnv, strings.TrimSuffix(export, "\n"))
	case shell.PowerShell:
		fmt.Fprintf(&b, "if (-not $Env:%s) { %s };\n", SessionEnv, strings.TrimSuffix(export, "\n"))
	default:
		fmt.Fprintf(&b, "if [ -z \"${%s:-}\" ]; then %s fi;\n", SessionEnv, strings.TrimSuffix(export, "\n"))
	}
	for _, name := range names {
		if sh == shell.PowerShell {
			body := name[1]
			if !strings.Contains(body, "|") {
				body += " @args"
			}
			fmt.Fprintf(&b, "function %s { %s };\n", prefix+name[0], body)
			continue
		}
		quoted, err := sh.Quote(name[1])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "alias %s=%s;\n", prefix+name[0], quoted)
	}
	if completion {
		b.WriteString(evaluated(sh, program+" completion "+string(sh)) + ";\n")
	}
	return b.String(), nil
}

// evaluated has a shell run what a command prints.
func evaluated(sh shell.Shell, command string) string {
	switch sh {
	case shell.Fish:
		return command + " | source"
	case shell.PowerShell:
		return command + " | Out-String | Invoke-Expression"
	}
	return `eval "$(` + command + `)"`
}

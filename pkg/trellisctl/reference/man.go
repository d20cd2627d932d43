package reference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Man returns man pages of section 1 by the names of their files, one for each command.
func Man(root *cobra.Command, version string) map[string]string {
	pages := map[string]string{}
	for _, command := range All(root) {
		pages[manName(command)+".1"] = manPage(command, version)
	}
	return pages
}

// manName is the name of a command's page, such as trellisctl-rollout-status.
func manName(command *cobra.Command) string {
	return strings.ReplaceAll(command.CommandPath(), " ", "-")
}

func manPage(command *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q %q\n", strings.ToUpper(manName(command)), "trellisctl "+version, "Trellis")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(command)), roff(command.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n%s\n", roff(command.UseLine()))
	if parts := partsOf(command.Long); len(parts) > 0 {
		b.WriteString(".SH DESCRIPTION\n")
		for _, part := range parts {
			if part.verbatim {
				verbatim(&b, part.text)
				continue
			}
			fmt.Fprintf(&b, ".PP\n%s\n", roff(part.text))
		}
	}
	manFlags(&b, "OPTIONS", command.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", command.InheritedFlags())
	if command.Example != "" {
		b.WriteString(".SH EXAMPLES\n")
		verbatim(&b, command.Example)
	}
	var others []string
	if command.HasParent() {
		others = append(others, roff(manName(command.Parent()))+"(1)")
	}
	for _, below := range available(command) {
		others = append(others, roff(manName(below))+"(1)")
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ", "))
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(flag)
		head := "--" + flag.Name
		if flag.Shorthand != "" {
			head = "-" + flag.Shorthand + ", " + head
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fP", roff(head))
		if name != "" {
			fmt.Fprintf(b, " \\fI%s\\fP", roff(name))
		}
		fmt.Fprintf(b, "\n%s\n", roff(usage))
	})
}

// verbatim writes lines that stay as they are.
func verbatim(b *strings.Builder, lines string) { fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(lines)) }

// roff is a text in which troff finds neither escapes nor requests.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

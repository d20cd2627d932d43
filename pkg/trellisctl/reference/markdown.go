// Package reference writes the reference of a program's commands, as pages in Markdown and as man pages. All that it
// tells comes from the commands; hidden ones are left out.
package reference

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Index is the page with all commands.
const Index = "README.md"

// Markdown returns pages by their names: an index, and one for each command below the root with all that is below it.
func Markdown(root *cobra.Command) map[string]string {
	pages := map[string]string{}
	var index strings.Builder
	section(&index, "#", root)
	listCommands(&index, root)
	for _, command := range available(root) {
		page := command.Name() + ".md"
		var b strings.Builder
		section(&b, "#", command)
		for _, below := range All(command)[1:] {
			b.WriteString("\n")
			section(&b, "##", below)
		}
		fmt.Fprintf(&b, "\nFlags of all commands are told in [the index](%s).\n", Index)
		pages[page] = b.String()
	}
	pages[Index] = index.String()
	return pages
}

// listCommands lists the commands below the root: those of each group of the root under its title.
func listCommands(b *strings.Builder, root *cobra.Command) {
	list := func(title, group string) {
		fmt.Fprintf(b, "\n%s\n\n| command | what it does |\n|---|---|\n", title)
		for _, command := range available(root) {
			if command.GroupID == group {
				fmt.Fprintf(b, "| [%s](%s.md) | %s |\n", command.CommandPath(), command.Name(), cell(command.Short))
			}
		}
	}
	if len(root.Groups()) == 0 {
		list("## Commands", "")
		return
	}
	b.WriteString("\n## Commands\n")
	for _, group := range root.Groups() {
		list("### "+strings.TrimSuffix(group.Title, ":"), group.ID)
	}
}

// All returns a command and all that are below it, but for hidden ones, parents first.
func All(command *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{command}
	for _, below := range available(command) {
		all = append(all, All(below)...)
	}
	return all
}

// available are the commands below a command that people see. Those that cobra adds are not ours to tell of.
func available(command *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, below := range command.Commands() {
		if below.IsAvailableCommand() && below.Name() != "completion" && below.Name() != "help" {
			list = append(list, below)
		}
	}
	return list
}

func section(b *strings.Builder, mark string, command *cobra.Command) {
	fmt.Fprintf(b, "%s %s\n\n%s.\n\n```\n%s\n```\n", mark, command.CommandPath(), text(command.Short),
		command.UseLine())
	for _, part := range partsOf(command.Long) {
		if part.verbatim {
			fmt.Fprintf(b, "\n```\n%s\n```\n", part.text)
			continue
		}
		fmt.Fprintf(b, "\n%s\n", text(part.text))
	}
	if command.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindented(command.Example))
	}
	if flags := command.NonInheritedFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimRight(flags.FlagUsages(), "\n"))
	}
}

// part is a paragraph, or lines that stay as they are.
type part struct {
	text     string
	verbatim bool
}

// partsOf divides a text as the help of trellisctl does: lines that are indented stay as they are.
func partsOf(long string) []part {
	var parts []part
	for block := range strings.SplitSeq(strings.Trim(long, "\n"), "\n\n") {
		var lines []string
		verbatim := false
		end := func() {
			if len(lines) > 0 {
				parts = append(parts, part{strings.Join(lines, "\n"), verbatim})
			}
			lines = nil
		}
		for line := range strings.SplitSeq(block, "\n") {
			if indented := strings.HasPrefix(line, " "); indented != verbatim {
				end()
				verbatim = indented
			}
			if line != "" {
				lines = append(lines, line)
			}
		}
		end()
	}
	return parts
}

// unindented takes away what all examples are indented by.
func unindented(example string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.Trim(example, "\n"), "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return strings.Join(lines, "\n")
}

// text is prose in which Markdown finds no marks of its own.
func text(prose string) string {
	return strings.NewReplacer(`\`, `\\`, "<", `\<`, "*", `\*`, "[", `\[`, "`", "\\`").Replace(prose)
}

func cell(prose string) string { return strings.ReplaceAll(text(prose), "|", `\|`) }

package reference

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// program has a command with one below it, and a hidden one.
func program() *cobra.Command {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "prog", Short: "Work with boats", Example: "  prog row fast"}
	row := &cobra.Command{
		Use: "row NAME", Short: "Row a boat", Run: run, Example: "  prog row fast\n  prog row slow",
		Long: "row takes <oars> and *all*\nyour strength.\n\n  OARS  two\n.begin with a dot\n",
	}
	row.Flags().StringP("oars", "o", "two", "which `kind` of oars")
	fast := &cobra.Command{Use: "fast", Short: "Row | fast", Run: run}
	row.AddCommand(fast)
	root.AddCommand(row, &cobra.Command{Use: "sink", Short: "Sink", Hidden: true, Run: run})
	root.PersistentFlags().Bool("calm", false, "wait for calm seas")
	return root
}

func TestMarkdown(t *testing.T) {
	pages := Markdown(program())
	if len(pages) != 2 {
		t.Fatalf("got %d pages", len(pages))
	}
	for page, parts := range map[string][]string{
		Index: {
			"# prog\n\nWork with boats.\n", "| [prog row](row.md) | Row a boat |\n", "--calm", "```sh\nprog row fast\n```",
		},
		"row.md": {
			"# prog row\n\nRow a boat.\n\n```\nprog row NAME [flags]\n```\n",
			"row takes \\<oars> and \\*all\\*\nyour strength.\n", "```\n  OARS  two\n```\n\n.begin with a dot\n",
			"```sh\nprog row fast\nprog row slow\n```", "-o, --oars kind", "\n## prog row fast\n\nRow | fast.\n",
		},
	} {
		for _, part := range parts {
			if !strings.Contains(pages[page], part) {
				t.Errorf("%s has no %q:\n%s", page, part, pages[page])
			}
		}
		if strings.Contains(pages[page], "ink") {
			t.Errorf("%s tells of a hidden command", page)
		}
	}
}

func TestGroupsOfMarkdown(t *testing.T) {
	root := program()
	root.AddGroup(&cobra.Group{ID: "b", Title: "Boats:"}, &cobra.Group{ID: "c", Title: "Coasts:"})
	for _, command := range root.Commands() {
		command.GroupID = "b"
	}
	const want = "\n## Commands\n\n### Boats\n\n| command | what it does |\n|---|---|\n" +
		"| [prog row](row.md) | Row a boat |\n\n### Coasts\n"
	if index := Markdown(root)[Index]; !strings.Contains(index, want) {
		t.Errorf("got\n%s", index)
	}
}

func TestMan(t *testing.T) {
	pages := Man(program(), "v1")
	if len(pages) != 3 || pages["prog-row-fast.1"] == "" {
		t.Fatalf("got %d pages", len(pages))
	}
	for _, part := range []string{
		".TH \"PROG-ROW\" 1 \"\" \"trellisctl v1\" \"Trellis\"\n", ".SH NAME\nprog\\-row \\- Row a boat\n",
		".PP\n.nf\n  OARS  two\n.fi\n", ".PP\n\\&.begin with a dot\n", ".TP\n\\fB\\-o, \\-\\-oars\\fP \\fIkind\\fP\n",
		".SH OPTIONS OF ALL COMMANDS\n.TP\n\\fB\\-\\-calm\\fP", ".SH SEE ALSO\nprog(1), prog\\-row\\-fast(1)\n",
	} {
		if !strings.Contains(pages["prog-row.1"], part) {
			t.Errorf("there is no %q in\n%s", part, pages["prog-row.1"])
		}
	}
}

package trellisctl

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestFold(t *testing.T) {
	const text = `join makes any cluster a member
of a fleet.

Next.

  FITS      it passed all checks, of which there are many
  NOW, THEN short
  trellisctl join edge1 --project demo --shoot fleet

Flags:
      --wait duration   how long to wait; ä does not wait
`
	const want = `join makes any cluster a member of a
fleet.

Next.

  FITS      it passed all checks, of
            which there are many
  NOW, THEN short
  trellisctl join edge1 --project demo --shoot fleet

Flags:
      --wait duration   how long to
                        wait; ä does
                        not wait
`
	if got := fold(text, 36); got != want {
		t.Errorf("got:\n%s", got)
	}
}

// Help fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	visit(NewCommand(), func(path string) {
		root := NewCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append(strings.Fields(path)[1:], "--help"))
		if err := root.Execute(); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
				t.Errorf("%s --help: %d columns: %s", path, n, line)
			}
		}
	})
}

func visit(command *cobra.Command, fn func(path string)) {
	fn(command.CommandPath())
	for _, c := range command.Commands() {
		visit(c, fn)
	}
}

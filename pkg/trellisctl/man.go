package trellisctl

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trellis-garden/trellis/pkg/trellisctl/reference"
	"github.com/trellis-garden/trellis/pkg/version"
)

// manCommand is for who makes packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write man pages into a folder", Hidden: true, Example: "  trellisctl man man1",
		Args: exactlyOne("folder"),
		RunE: func(command *cobra.Command, arguments []string) error {
			pages := reference.Man(command.Root(), version.String())
			if err := os.MkdirAll(arguments[0], 0o755); err != nil {
				return err
			}
			for name, content := range pages {
				if err := os.WriteFile(filepath.Join(arguments[0], name), []byte(content), 0o644); err != nil {
					return err
				}
			}
			fmt.Fprintf(command.OutOrStdout(), "Wrote %s into %s\n", counted(len(pages), "page"), arguments[0])
			return nil
		},
	}
}

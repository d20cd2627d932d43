// trellisctl is the command line client of Trellis. Installed as kubectl-trellis it is the plugin `kubectl trellis`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/trellis-garden/trellis/pkg/trellisctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	command := trellisctl.NewCommand()
	command.SetArgs(trellisctl.Arguments(os.Args[1:]))
	err := command.ExecuteContext(ctx)
	var exit trellisctl.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.Code)
	case err != nil && ctx.Err() != nil:
		// What a shell says of commands that were interrupted.
		fmt.Fprintln(os.Stderr, "Interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(trellisctl.Visible(os.Stderr), "Error:", err)
		os.Exit(1)
	}
}

package trellisctl

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// pointToHelp has every mistake in flags and arguments say where usage is told, and commands that are there for others
// refuse what is none of them: a script with a typing error must not go on.
func pointToHelp(root *cobra.Command) {
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		// A mistyped command doesn't know the flags of the one that was meant.
		if command.HasSubCommands() && !takesArguments(command) && command.Flags().NArg() > 0 {
			err = oneOfItsCommands(command, command.Flags().Args())
		}
		return withHelp(command, explainFlag(err))
	})
	setArguments(root)
}

// ownArguments is the annotation of commands that have others below them and take arguments, too.
const ownArguments = "trellis.garden/own-arguments"

func takesArguments(command *cobra.Command) bool {
	_, takes := command.Annotations[ownArguments]
	return takes
}

func setArguments(command *cobra.Command) {
	for _, c := range command.Commands() {
		setArguments(c)
	}
	if command.HasSubCommands() && !takesArguments(command) {
		command.Args = oneOfItsCommands
		if !command.Runnable() {
			command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
		}
	}
	accepts := command.Args
	if accepts == nil {
		return
	}
	command.Args = func(command *cobra.Command, arguments []string) error {
		return withHelp(command, cmp.Or(eitherNameOrTime(command, accepts, arguments), accepts(command, arguments)))
	}
}

func withHelp(command *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; see `%s --help`", err, command.CommandPath())
}

// oneOfItsCommands is for commands that have others below them.
func oneOfItsCommands(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s has no command %q", command.CommandPath(), arguments[0])
	command.SuggestionsMinimumDistance = 2
	if similar := command.SuggestionsFor(arguments[0]); len(similar) > 0 {
		return fmt.Errorf("%s; similar: %s", message, strings.Join(similar, ", "))
	}
	if names := namesOf(command.Commands()); len(arguments) == 1 && slices.Equal(names, []string{"shoot"}) &&
		len(validation.IsDNS1123Label(arguments[0])) == 0 {
		return fmt.Errorf("%s; for the shoot of that name say `%s shoot %s`", message, command.CommandPath(),
			arguments[0])
	}
	// All that trellisctl itself has are too many for a line.
	if command.HasParent() {
		message += "; it has " + strings.Join(namesOf(command.Commands()), ", ")
	}
	return errors.New(message)
}

// namesOf are the names of commands that people may call.
func namesOf(commands []*cobra.Command) []string {
	var names []string
	for _, c := range commands {
		if c.IsAvailableCommand() && c.Name() != "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

// noArguments is for commands that take flags only.
func noArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		return fmt.Errorf("%s takes flags only, and was given %q", command.CommandPath(), arguments[0])
	}
	return nil
}

// oneOfValidArgs is for commands that take one of some words.
func oneOfValidArgs(command *cobra.Command, arguments []string) error {
	if len(arguments) == 1 && slices.Contains(command.ValidArgs, arguments[0]) {
		return nil
	}
	return fmt.Errorf("%s takes one of %s", command.CommandPath(), strings.Join(command.ValidArgs, ", "))
}

// optional lets the argument be left out.
func optional(accepts cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return nil
		}
		return accepts(command, arguments)
	}
}

// What most commands are about.
var (
	oneMember = exactlyOne("member")
	oneObject = exactlyOne("object as TYPE/NAME")
)

func exactlyOne(what string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 1 {
			return nil
		}
		example, _, _ := strings.Cut(strings.TrimSpace(command.Example), "\n")
		return fmt.Errorf("name one %s, for example `%s`", what, example)
	}
}

package trellisctl

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// explainFlag says of a flag that was given a wrong value which one it is, what it was given, and what it takes: in
// words of people, and not of the libraries that read the value.
func explainFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return fmt.Errorf("--%s %q: %s", invalid.GetFlag().Name, invalid.GetValue(),
			whatIsTaken(invalid.GetFlag(), invalid.Unwrap()))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		_, usage := pflag.UnquoteUsage(missing.GetFlag())
		return fmt.Errorf("--%s needs a value: %s", missing.GetFlag().Name, usage)
	}
	return err
}

// whatIsTaken is what a flag takes. Flags with values of their own say it themselves.
func whatIsTaken(flag *pflag.Flag, cause error) string {
	kind := flag.Value.Type()
	switch {
	case errors.Is(cause, strconv.ErrRange):
		return "must be a number that is not as large"
	case errors.As(cause, new(*strconv.NumError)) && kind == "bool":
		return "must be true or false; true may be left out"
	case errors.As(cause, new(*strconv.NumError)):
		return "must be a whole number, such as " + exampleNumber(flag.DefValue)
	case errors.As(cause, new(*csv.ParseError)):
		return "must be a list with commas between its parts, such as a,b; a part with a comma is written in quotes"
	case kind == "duration" && strings.HasPrefix(cause.Error(), "time:"):
		return "must be a duration, for example 90s, 5m or 1h30m"
	}
	return cause.Error()
}

// exampleNumber is the default of a flag, unless that says nothing.
func exampleNumber(byDefault string) string {
	if byDefault == "" || byDefault == "0" {
		return "3"
	}
	return byDefault
}

// countFlag is a whole number that is not less than another.
type countFlag struct {
	into  *int64
	least int64
}

// countVar is a flag for a number whose value before that is the default.
func countVar(flags *pflag.FlagSet, into *int64, name string, least int64, usage string) {
	flags.Var(&countFlag{into, least}, name, usage)
}

func (f *countFlag) String() string {
	if f.into == nil {
		return "0"
	}
	return strconv.FormatInt(*f.into, 10)
}

// Type is what help calls the value.
func (f *countFlag) Type() string { return "int" }

// Set takes what people give the flag.
func (f *countFlag) Set(text string) error {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	if number < f.least {
		return fmt.Errorf("must be %d or more", f.least)
	}
	*f.into = number
	return nil
}

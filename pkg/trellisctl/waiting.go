package trellisctl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// defaultTimeout is how long is waited for a shoot unless said otherwise.
const defaultTimeout = 30 * time.Minute

// waitFlagName is the switch that all commands have which can wait.
const waitFlagName = "wait"

// waiting is what is said about waiting for what was asked for: the switch --wait, and --timeout.
type waiting struct {
	wait    bool
	timeout time.Duration
}

// flags are those of a command that does not wait unless it is told to.
func (w *waiting) flags(command *cobra.Command) {
	w.flagsFor(command, false, defaultTimeout, "it is done, and show how far it is")
}

// flagsFor are the flags of a command that waits, or does not wait, until something is so.
func (w *waiting) flagsFor(command *cobra.Command, wait bool, timeout time.Duration, until string) {
	w.wait = wait
	flag := command.Flags().VarPF(&waitFlag{waiting: w, command: command}, waitFlagName, "", "wait until "+until)
	flag.NoOptDefVal = strconv.FormatBool(true)
	w.timeoutFlag(command, timeout)
}

func (w *waiting) timeoutFlag(command *cobra.Command, timeout time.Duration) {
	w.timeout = timeout
	command.Flags().Var((*timeoutFlag)(&w.timeout), "timeout", "how long to wait at most")
}

// atMost is how long to wait; 0 is not at all.
func (w *waiting) atMost() time.Duration {
	if !w.wait {
		return 0
	}
	return w.timeout
}

// onTerminals is the waiting of a command that waits where somebody looks on, unless it was told whether to.
func (w waiting) onTerminals(command *cobra.Command) waiting {
	if flag := command.Flags().Lookup(waitFlagName); flag != nil && !flag.Changed {
		w.wait = terminalOf(command.OutOrStdout()) != nil && terminalOf(command.ErrOrStderr()) != nil
	}
	return w
}

// waitFlag is the switch --wait. Before there was --timeout, it took a duration: that still works, and is told.
type waitFlag struct {
	*waiting
	command *cobra.Command
	// apart is such a duration if it was a word of its own, which may have been meant as a name.
	apart string
}

func (f *waitFlag) String() string {
	return strconv.FormatBool(f.waiting != nil && f.wait)
}

// Type is what help takes for a switch.
func (f *waitFlag) Type() string { return "bool" }

func (f *waitFlag) Set(text string) error {
	text, isApart := strings.CutPrefix(text, apartMark)
	if isApart {
		f.apart = text
	}
	duration, err := time.ParseDuration(text)
	if err != nil {
		f.wait, err = strconv.ParseBool(text)
		if err != nil {
			return errors.New("is a switch; how long to wait is said by --timeout, for example --wait --timeout 5m")
		}
		return nil
	}
	instead := "--wait=false"
	switch {
	case duration < 0:
		return fmt.Errorf("nobody can wait for %s; write --wait --timeout 5m, or --wait=false", text)
	case duration == 0:
		f.wait = false
	default:
		f.wait, f.timeout = true, duration
		instead = "--wait --timeout " + text
	}
	tell(f.command)("--wait %s is how it was said once; write %s", text, instead)
	return nil
}

// timeoutFlag is a duration in which something can happen.
type timeoutFlag time.Duration

func (f *timeoutFlag) String() string { return time.Duration(*f).String() }

// Type is what help calls the value.
func (f *timeoutFlag) Type() string { return "duration" }

func (f *timeoutFlag) Set(text string) error {
	duration, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("must be a duration, for example 90s, 5m or 1h30m")
	}
	if duration <= 0 {
		return errors.New("must be more than 0; to ask for something and not wait, leave out --wait, " +
			"or say --wait=false")
	}
	*f = timeoutFlag(duration)
	return nil
}

// apartMark stands before a duration that Arguments put behind "--wait=". No shell leaves it there unless it is quoted.
const apartMark = " "

// Arguments are the words of a command line as the commands take them: a switch has its value behind "=", and so the
// duration that --wait took once, as in "--wait 5m", is put there. Where it may be a name as well, the command is
// refused (eitherNameOrTime).
func Arguments(words []string) []string {
	var result []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			return slices.Concat(result, words[i:])
		}
		if word == "--"+waitFlagName && i+1 < len(words) {
			if _, err := time.ParseDuration(words[i+1]); err == nil {
				i++
				word += "=" + apartMark + words[i]
			}
		}
		result = append(result, word)
	}
	return result
}

// eitherNameOrTime refuses a duration that was a word of its own behind --wait if the command could take it for a name
// as well: a shoot may be called 5m, and the target, which is not meant then, must be left alone.
func eitherNameOrTime(command *cobra.Command, accepts cobra.PositionalArgs, arguments []string) error {
	flag := command.Flags().Lookup(waitFlagName)
	if flag == nil || command.Flags().Changed("shoot") || command.Flags().Changed("all") {
		return nil
	}
	wait, ok := flag.Value.(*waitFlag)
	if !ok || wait.apart == "" || accepts(command, append(slices.Clone(arguments), wait.apart)) != nil {
		return nil
	}
	return fmt.Errorf("%q behind --wait may be how long to wait, and a name: say --wait --timeout %s, or the name "+
		"before --wait", wait.apart, wait.apart)
}

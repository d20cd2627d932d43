package trellisctl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-garden/trellis/pkg/trellisctl/order"
)

// asker asks people what is open, or says what it is where there are none.
type asker struct {
	out io.Writer
	// in is nil where nobody can be asked.
	in *bufio.Reader
}

func newAsker(command *cobra.Command) *asker {
	a := &asker{out: command.ErrOrStderr()}
	if terminalOf(command.InOrStdin()) != nil {
		a.in = bufio.NewReader(command.InOrStdin())
	}
	return a
}

// all asks until nothing is open any more.
func (a *asker) all(open func() []order.Question) error {
	for {
		questions := open()
		if len(questions) == 0 {
			return nil
		}
		if a.in == nil {
			return nobodyToAsk(questions)
		}
		if err := a.ask(questions[0]); err != nil {
			return err
		}
	}
}

// nobodyToAsk tells all that is open: the field, the flag, and the choices.
func nobodyToAsk(questions []order.Question) error {
	var errs []error
	for _, question := range questions {
		choices := make([]string, len(question.Choices))
		for i, choice := range question.Choices {
			choices[i] = oneLine(choice)
		}
		text := fmt.Sprintf("%s is not known; say it by %s", question.Path, oneLine(question.Flag))
		if len(choices) > 0 {
			text += ", one of " + strings.Join(choices, ", ")
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

// ask asks one question until the answer is one.
func (a *asker) ask(question order.Question) error {
	for {
		for i, choice := range question.Choices {
			fmt.Fprintf(a.out, "  %d) %s\n", i+1, oneLine(choice))
		}
		fmt.Fprintf(a.out, "%s? ", oneLine(question.Text))
		line, err := a.in.ReadString('\n')
		if err != nil {
			fmt.Fprintln(a.out)
			return fmt.Errorf("%s is not known, and nobody answers (%w); say it by %s", question.Path, err,
				oneLine(question.Flag))
		}
		answer, err := chosen(question, strings.TrimSpace(line))
		if err == nil {
			err = question.Answer(answer)
		}
		if err == nil {
			return nil
		}
		fmt.Fprintln(a.out, oneLine(err.Error()))
	}
}

// chosen is the answer to a question: choices are named, or given by their numbers.
func chosen(question order.Question, line string) (string, error) {
	if len(question.Choices) == 0 {
		if line == "" {
			return "", errors.New("an answer is needed")
		}
		return line, nil
	}
	parts := []string{line}
	if question.Several {
		parts = strings.Split(line, ",")
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if number, err := strconv.Atoi(part); err == nil && number >= 1 && number <= len(question.Choices) &&
			!slices.Contains(question.Choices, part) {
			part = question.Choices[number-1]
		}
		if !slices.Contains(question.Choices, part) {
			return "", fmt.Errorf("%q is not among the choices; give a name or a number", part)
		}
		parts[i] = part
	}
	return strings.Join(parts, ","), nil
}

// cloudProfileQuestion asks for one of several cloud profiles.
func cloudProfileQuestion(choices []string, into *string) order.Question {
	return order.Question{
		Path: field.NewPath("spec", "cloudProfile", "name"), Flag: "--cloud-profile", Text: "Of which cloud profile",
		Choices: choices,
		Answer: func(answer string) error {
			*into = answer
			return nil
		},
	}
}

package main

import "github.com/spf13/cobra"

// require marks flags without which a command cannot run. Names that are no flags are mistakes in this program.
func require(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

func parseAll[T any](texts []string, parse func(string) (T, error)) ([]T, error) {
	values := make([]T, 0, len(texts))
	for _, text := range texts {
		value, err := parse(text)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func parseOptional[T any](text string, parse func(string) (T, error)) (value T, err error) {
	if text == "" {
		return value, nil
	}
	return parse(text)
}

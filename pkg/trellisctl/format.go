package trellisctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats in which commands print. Only yaml and json are for programs.
const (
	formatText = "text"
	formatWide = "wide"
	formatName = "name"
	formatYAML = "yaml"
	formatJSON = "json"
)

// formatFlag is a flag with one of the formats that its command offers. Its value before that is the default.
type formatFlag struct {
	value   string
	offered []string
}

func (f *formatFlag) flag(command *cobra.Command, offered ...string) {
	f.flagFor(command, "format of the output: "+strings.Join(offered, ", "), offered...)
}

// wideFlag is for lists that have more columns than fit 80 characters.
func (f *formatFlag) wideFlag(command *cobra.Command, more string) {
	f.flagFor(command, "wide: also "+more, formatWide)
}

// flagFor is the flag in words of the command's own.
func (f *formatFlag) flagFor(command *cobra.Command, usage string, offered ...string) {
	f.offered = offered
	command.Flags().VarP(f, "output", "o", usage)
	completeFlag(command, "output", cobra.FixedCompletions(offered, cobra.ShellCompDirectiveNoFileComp))
}

func (f *formatFlag) String() string { return f.value }

// Set takes what people give the flag.
func (f *formatFlag) Set(value string) error {
	switch {
	case slices.Contains(f.offered, value):
		f.value = value
		return nil
	case len(f.offered) == 1:
		return fmt.Errorf("must be %s, or left out", f.offered[0])
	}
	return fmt.Errorf("must be one of %s", strings.Join(f.offered, ", "))
}

// Type is what help calls the value.
func (f *formatFlag) Type() string { return "format" }

func (f *formatFlag) isWide() bool { return f.value == formatWide }

// isDocument says whether programs are to read the output.
func (f *formatFlag) isDocument() bool { return f.value == formatYAML || f.value == formatJSON }

// print writes a value as a document.
func (f *formatFlag) print(out io.Writer, value any) error {
	var data []byte
	var err error
	if f.value == formatJSON {
		if data, err = json.MarshalIndent(value, "", "  "); err == nil {
			data = append(data, '\n')
		}
	} else {
		data, err = marshalYAML(value)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// marshalYAML takes any text: what is no text in YAML, such as an escape sequence, is written as an escape.
func marshalYAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var escaped bytes.Buffer
	for _, r := range string(data) {
		if unicode.IsControl(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	return yaml.JSONToYAML(escaped.Bytes())
}

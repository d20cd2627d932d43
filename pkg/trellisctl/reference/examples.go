package reference

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// invocation is a call of trellisctl in a line of a shell.
	invocation = regexp.MustCompile(`(?:^|[\s("'])(?:bin/)?trellisctl((?: +[^\s|>&;()#"'` + "`" + `]+)+)`)
	// mention is anything that could be one.
	mention = regexp.MustCompile(`\btrellisctl +[^\s|>&;)#]`)
	// behind is what may follow: the end, another command, a redirection or a comment.
	behind = regexp.MustCompile(`^(?:\s*$|\s*[|>&;)#]|["'])`)
	fenced = regexp.MustCompile("(?ms)^ *```[^\n]*\n(.*?)^ *```$")
)

// Invocations are the arguments of all calls of trellisctl in lines of a shell. A call that is not understood is an
// error.
func Invocations(text string) ([][]string, error) {
	var calls [][]string
	var errs []error
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		found := invocation.FindAllStringSubmatchIndex(line, -1)
		if len(found) < len(mention.FindAllString(line, -1)) {
			errs = append(errs, fmt.Errorf("calls are not understood: %s", line))
		}
		for _, at := range found {
			if !behind.MatchString(line[at[1]:]) {
				errs = append(errs, fmt.Errorf("a call is not understood from %q on", line[at[1]:]))
			}
			calls = append(calls, strings.Fields(line[at[2]:at[3]]))
		}
	}
	return calls, errors.Join(errs...)
}

// InvocationsOfPage are those in the examples of a page in Markdown: in its fenced blocks.
func InvocationsOfPage(page string) ([][]string, error) {
	var calls [][]string
	var errs []error
	for _, block := range fenced.FindAllStringSubmatch(page, -1) {
		found, err := Invocations(block[1])
		calls, errs = append(calls, found...), append(errs, err)
	}
	return calls, errors.Join(errs...)
}

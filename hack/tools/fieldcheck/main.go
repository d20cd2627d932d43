// fieldcheck lists fields of the API that no code acts upon: they are decoded, defaulted, validated and stored, and
// then nothing happens. Every field that is accepted has an effect or is refused with a reason, so each one that it
// lists is a bug, unless the file of exceptions says where the field acts. It runs in the root of the module:
//
//	go -C hack/tools build -o fieldcheck ./fieldcheck && fieldcheck hack/fieldcheck.txt
//
// A field acts where code that counts reads it. A field of a status, which is what controllers tell, also acts where it
// is set. What counts is the program without validation and printing: see code.go. An exception is a line
// "core/v1beta1.Shoot.Spec: reason"; a pattern that ends in "*" stands for all fields that begin with it. Exceptions
// that nothing needs are errors as well.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// programs are the packages whose code counts.
var programs = []string{"./pkg/...", "./cmd/...", "./extensions/..."}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fieldcheck:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	if len(arguments) != 1 {
		return errors.New("want one argument: the file of exceptions")
	}
	exceptions, err := readExceptions(arguments[0])
	if err != nil {
		return err
	}
	idle, err := idleFields(".", programs)
	if err != nil {
		return err
	}
	complaints := 0
	for _, field := range idle {
		if !exceptions.allow(field) {
			fmt.Fprintf(out, "%s: no code acts on this field: let it have its effect, refuse it, or say in %s where "+
				"it acts\n", field, arguments[0])
			complaints++
		}
	}
	complaints += complainOfUnused(out, arguments[0], exceptions)
	if complaints > 0 {
		return fmt.Errorf("%d complaints", complaints)
	}
	return nil
}

// complainOfUnused tells which exceptions nothing needs, and how many they are.
func complainOfUnused(out io.Writer, path string, exceptions exceptionList) (complaints int) {
	for _, e := range exceptions {
		if !e.used {
			fmt.Fprintf(out, "%s:%d: %s: there is no such idle field: remove the line\n", path, e.line, e.pattern)
			complaints++
		}
	}
	return complaints
}

// exception is a line of the file of exceptions.
type exception struct {
	pattern string
	line    int
	used    bool
}

type exceptionList []*exception

// readExceptions reads the file of exceptions. Empty lines and those that begin with "#" are comments.
func readExceptions(path string) (exceptionList, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var list exceptionList
	scanner := bufio.NewScanner(file)
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		pattern, reason, found := strings.Cut(text, ": ")
		if !found || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: want \"field: reason\"", path, line)
		}
		list = append(list, &exception{pattern: pattern, line: line})
	}
	return list, scanner.Err()
}

// allow tells whether an exception names the field, and notes every one that does.
func (l exceptionList) allow(field string) bool {
	allowed := false
	for _, e := range l {
		prefix, isPattern := strings.CutSuffix(e.pattern, "*")
		if e.pattern == field || isPattern && strings.HasPrefix(field, prefix) {
			e.used, allowed = true, true
		}
	}
	return allowed
}

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// firstOwn is the first number of fields that the published API does not have.
const firstOwn = 1001

// Numbers are the numbers of fields by message, which is named by folder and type: core/v1beta1.Shoot.
type Numbers struct {
	comment  []string
	messages map[string]map[string]int
}

// parse reads lines such as «core/v1beta1.Shoot metadata=1 spec=2 status=3» below a comment.
func parse(content string) (*Numbers, error) {
	numbers := &Numbers{messages: map[string]map[string]int{}}
	lines := bufio.NewScanner(strings.NewReader(content))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			numbers.comment = append(numbers.comment, line)
			continue
		}
		if err := numbers.parseMessage(strings.Fields(line)); err != nil {
			return nil, fmt.Errorf("line %q: %w", line, err)
		}
	}
	return numbers, lines.Err()
}

func (n *Numbers) parseMessage(words []string) error {
	if len(words) == 0 {
		return nil
	}
	message := words[0]
	if n.messages[message] != nil {
		return fmt.Errorf("%s is there twice", message)
	}
	for _, word := range words[1:] {
		field, text, _ := strings.Cut(word, "=")
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			return fmt.Errorf("%q is not <field>=<number>", word)
		}
		if err := n.add(message, field, number); err != nil {
			return err
		}
	}
	return nil
}

// add records the number of a field. Neither is given twice.
func (n *Numbers) add(message, field string, number int) error {
	if n.messages[message] == nil {
		n.messages[message] = map[string]int{}
	}
	for other, taken := range n.messages[message] {
		if (other == field) != (taken == number) {
			return fmt.Errorf("%s: field %s cannot have number %d, as field %s has %d: numbers are never changed "+
				"and never used again",
				message, field, number, other, taken)
		}
	}
	n.messages[message][field] = number
	return nil
}

// of returns the number of a field, and gives it one of our own if it has none.
func (n *Numbers) of(message, field string) int {
	if number, found := n.messages[message][field]; found {
		return number
	}
	number := firstOwn
	for _, taken := range n.messages[message] {
		number = max(number, taken+1)
	}
	if n.messages[message] == nil {
		n.messages[message] = map[string]int{}
	}
	n.messages[message][field] = number
	return number
}

// String is the content of the file.
func (n *Numbers) String() string {
	var out strings.Builder
	for _, line := range n.comment {
		out.WriteString(line + "\n")
	}
	for _, message := range slices.Sorted(maps.Keys(n.messages)) {
		out.WriteString(message)
		fields := n.messages[message]
		byNumber := slices.SortedFunc(maps.Keys(fields),
			func(a, b string) int { return cmp.Compare(fields[a], fields[b]) })
		for _, field := range byNumber {
			fmt.Fprintf(&out, " %s=%d", field, fields[field])
		}
		out.WriteString("\n")
	}
	return out.String()
}

// Package few shortens lists in messages, whose length users would choose otherwise.
package few

import (
	"fmt"
	"strings"
)

// Joined joins texts, of which it leaves out those after the first most, and says how many these are.
func Joined(texts []string, most int, separator string) string {
	if more := len(texts) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:most], separator), more)
	}
	return strings.Join(texts, separator)
}

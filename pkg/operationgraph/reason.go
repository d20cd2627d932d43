package operationgraph

import (
	"regexp"

	"github.com/trellis-garden/trellis/pkg/redact"
)

// longestReason bounds what secrets are looked for in: the rest of an error is not told.
const longestReason = 4 << 10

// nameOfSecret is what a Secret is called in the errors of API servers and of gardenlet.
var nameOfSecret = regexp.MustCompile(`(?i)\b((?:internal)?secrets?)(\s+)(?:"[^"]*"|\S*[/.0-9-]\S*)`)

// Reason is the text of an error as a graph tells it: its first line, without secrets and without what Secrets are
// called. ConfigMaps are read by more people than Secrets and the status of Shoots.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	text := redact.Text(oneLine(err.Error(), longestReason))
	return oneLine(nameOfSecret.ReplaceAllString(text, "${1}${2}(name hidden)"), maxText)
}

// Package redact takes secrets out of texts and objects before they are shown to somebody else. It knows what secrets
// of Kubernetes, Gardener, clouds and HTTP look like, and what fields are called that hold some; where it is not sure
// it takes out too much. It reads nothing and writes nothing.
package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Removed stands where something was taken out.
const Removed = "[redacted]"

// depth bounds how often something is decoded: base64 of base64 is common, more is not.
const depth = 3

// secretName is what fields, variables, headers and flags are called that hold secrets.
const secretName = `[a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key` +
	`|key[_-]?data|credential|authorization|cookie|kubeconfig|user[_-]?data|rclone[_-]?config)[a-z0-9_.-]*`

// value is one in quotes, one in quotes that are escaped, as in a string of JSON, or one that ends where it may.
const value = `("(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|\\+".*?(?:\\+"|$)|`

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?` +
		`(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)`)
	// endOfKey is what is left of a key whose beginning was cut off.
	endOfKey = regexp.MustCompile(`(?:[A-Za-z0-9+/=]+(?:\s|\\n|\\r)+)*[A-Za-z0-9+/=]*(?:\s|\\n|\\r)*` +
		`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	// lineOfKey is one from the middle of a key; it may be one of a certificate.
	lineOfKey = regexp.MustCompile(`(?m)^[ \t]*[A-Za-z0-9+/]{64}[ \t\r]*$`)
	encoded   = regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`)
	jwt       = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?`)
	// shortKey is one of 32 bytes, as those of WireGuard.
	shortKey  = regexp.MustCompile(`(^|[^A-Za-z0-9+/])[A-Za-z0-9+/]{43}=($|[^=])`)
	scheme    = regexp.MustCompile(`(?i)\b(bearer|basic)[ \t]+[A-Za-z0-9._~+/=-]{8,}`)
	header    = regexp.MustCompile(`(?im)((?:authorization|cookie)[ \t]*:[ \t]*)[^\s"'\\].*$`)
	yamlLine  = regexp.MustCompile(`(?im)^([ \t]*(?:- )?(` + secretName + `):[ \t]+)[^\s"'|>{\[].*$`)
	quotedKey = regexp.MustCompile(`(?im)(\\*["'](` + secretName + `)\\*["'][ \t]*:[ \t]*)` + value + `[^\s,}\]"'\\]+)`)
	flag      = regexp.MustCompile(`(?i)(--(` + secretName + `)[ \t]+)[^\s"'\\-][^\s"'\\]*`)
	plainKey  = regexp.MustCompile(`(?im)(\b(` + secretName + `)[ \t]*[:=][ \t]*)` + value + `[^\s"'\\]+)`)
	userInfo  = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^\s/@:"']*:[^\s/@"']*@`)
	bootstrap = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	accessKey = regexp.MustCompile(`\bA(?:KIA|SIA)[A-Z0-9]{16}\b`)
	isSecret  = regexp.MustCompile(`(?i)^(?:--?)?` + secretName + `$`)
)

// harmless are ends of names that tell about a secret and not what it is.
var harmless = []string{
	"name", "names", "ref", "refs", "namespace", "seconds", "timestamp", "time", "type", "version", "count", "kind",
	"lifetime", "expiration", "rotation", "enabled", "mountpath", "path", "file",
}

// Name says whether a field, variable, header or flag of that name holds a secret.
func Name(name string) bool {
	if !isSecret.MatchString(name) {
		return false
	}
	lower := strings.ToLower(name)
	for _, end := range harmless {
		if strings.HasSuffix(lower, end) {
			return false
		}
	}
	return true
}

// Text returns the text without what looks like a secret.
func Text(text string) string { return cleaned(text, depth) }

func cleaned(text string, depth int) string {
	// Keys come first: they are recognized by what stands around them.
	for _, secret := range []*regexp.Regexp{privateKey, endOfKey, jwt} {
		text = secret.ReplaceAllLiteralString(text, Removed)
	}
	text = encoded.ReplaceAllStringFunc(text, func(found string) string {
		if hides(found, depth) {
			return Removed
		}
		return found
	})
	text = lineOfKey.ReplaceAllLiteralString(text, Removed)
	text = scheme.ReplaceAllString(text, "${1} "+Removed)
	text = header.ReplaceAllString(text, "${1}"+Removed)
	text = userInfo.ReplaceAllString(text, "${1}"+Removed+"@")
	for _, pair := range []*regexp.Regexp{quotedKey, yamlLine, plainKey, flag} {
		text = withoutValues(pair, text)
	}
	text = shortKey.ReplaceAllString(text, "${1}"+Removed+"${2}")
	for _, token := range []*regexp.Regexp{bootstrap, accessKey} {
		text = token.ReplaceAllLiteralString(text, Removed)
	}
	return text
}

// withoutValues takes out the values of what has a secret's name: the first group is all before the value, the second
// the name. Behind a name that is harmless it looks on from its value, which may be a pair, too.
func withoutValues(pair *regexp.Regexp, text string) string {
	var b strings.Builder
	for {
		at := pair.FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at[3]])
		value := text[at[3]:]
		if Name(text[at[4]:at[5]]) && !strings.HasPrefix(strings.TrimLeft(value, `\"'`), Removed) {
			b.WriteString(Removed)
			value = text[at[1]:]
		}
		text = value
	}
}

// hides says whether there is a secret in what is base64. It may begin behind something that looks like base64, too.
func hides(found string, depth int) bool {
	if depth == 0 {
		return false
	}
	found = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(found)
	for offset := range 4 {
		part := found[offset:]
		decoded, err := base64.StdEncoding.DecodeString(part[:len(part)/4*4])
		if err == nil && cleaned(string(decoded), depth-1) != string(decoded) {
			return true
		}
	}
	return false
}

package providerenv

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/trellis-garden/trellis/pkg/trellisctl/shell"
)

// Data is what templates are given.
type Data struct {
	ProviderType, Region string
	Credentials          map[string][]byte
	// ConfigDir is a folder of the session, for files of tools.
	ConfigDir string
	Unset     bool
}

// secret is a value that templates can give to shellEscape and nothing else: printed in any other way, it makes the
// template fail.
type secret struct {
	name, text string
	printed    *error
}

// Format is called for all verbs, by all functions that make text of values.
func (s secret) Format(fmt.State, rune) {
	*s.printed = fmt.Errorf("unsafeSecretData.%s is printed as it is: write {{ shellEscape .unsafeSecretData.%s }}, "+
		"without quotes around it", s.name, s.name)
}

// Render fills a template of the user's: .unsafeSecretData has the credentials, .configDir a folder, .region the
// shoot's region, and .__meta what is asked (shell, providerType, unset). The function shellEscape makes one word of a
// value.
func Render(text string, sh shell.Shell, data Data) (string, error) {
	var printed error
	escape := func(value any) (string, error) {
		switch typed := value.(type) {
		case *secret:
			if typed == nil {
				return sh.Quote("")
			}
			return sh.Quote(typed.text)
		case secret:
			return sh.Quote(typed.text)
		case string:
			return sh.Quote(typed)
		}
		return "", fmt.Errorf("shellEscape takes a text, not a %T", value)
	}
	parsed, err := template.New("template").Funcs(template.FuncMap{"shellEscape": escape}).Parse(text)
	if err != nil {
		return "", err
	}
	secrets := map[string]*secret{}
	for name, value := range data.Credentials {
		secrets[name] = &secret{name, string(value), &printed}
	}
	var b strings.Builder
	err = parsed.Execute(&b, map[string]any{
		"unsafeSecretData": secrets, "configDir": data.ConfigDir, "region": data.Region,
		"__meta": map[string]any{"shell": string(sh), "providerType": data.ProviderType, "unset": data.Unset},
	})
	if err := errors.Join(err, printed); err != nil {
		return "", err
	}
	return b.String(), nil
}

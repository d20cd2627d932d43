// Package userdata renders the files and units of an OperatingSystemConfig as the shell script that a Debian machine
// runs at its first boot.
package userdata

import (
	"encoding/base64"
	"fmt"
	"path"
	"strings"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const unitDir = "/etc/systemd/system"

// ReadSecret returns a key of a Secret beside the OperatingSystemConfig.
type ReadSecret func(name, key string) ([]byte, error)

// Render writes the script. Content is passed as base64, except where a file asks to be transmitted unencoded because
// machine-controller-manager fills in placeholders such as <<BOOTSTRAP_TOKEN>>.
func Render(files []extensionsv1alpha1.File, units []extensionsv1alpha1.Unit, readSecret ReadSecret) (string, error) {
	script := &strings.Builder{}
	script.WriteString("#!/bin/bash\nset -eu\n")
	if err := writeFiles(script, files, readSecret); err != nil {
		return "", err
	}
	for _, unit := range units {
		if unit.Content != nil {
			writeBase64(script, path.Join(unitDir, unit.Name), []byte(*unit.Content), 0o644)
		}
		for _, dropIn := range unit.DropIns {
			writeBase64(script, path.Join(unitDir, unit.Name+".d", dropIn.Name), []byte(dropIn.Content), 0o644)
		}
	}
	script.WriteString("systemctl daemon-reload\n")
	for _, unit := range units {
		writeStart(script, unit)
	}
	return script.String(), nil
}

// writeFiles writes the files of all machines, and then those of one alone, which take the place of others. The script
// is the same for all machines of a pool, so it asks for the name.
func writeFiles(script *strings.Builder, files []extensionsv1alpha1.File, readSecret ReadSecret) error {
	for _, ofOne := range []bool{false, true} {
		for i, file := range files {
			if (file.HostName != nil) != ofOne {
				continue
			}
			if ofOne {
				fmt.Fprintf(script, "if [ \"$(uname -n)\" = %s ]; then\n", quote(*file.HostName))
			}
			if err := writeFile(script, file, readSecret); err != nil {
				return fmt.Errorf("spec.files[%d] (%s): %w", i, file.Path, err)
			}
			if ofOne {
				script.WriteString("fi\n")
			}
		}
	}
	return nil
}

// writeStart brings a unit to the state that it is to have: running, unless it is disabled or its command says
// otherwise.
func writeStart(script *strings.Builder, unit extensionsv1alpha1.Unit) {
	name, verb := quote(unit.Name), "restart"
	if unit.Enable != nil && !*unit.Enable {
		verb = "stop"
		fmt.Fprintf(script, "systemctl disable %s\n", name)
	} else {
		fmt.Fprintf(script, "systemctl enable --quiet %s\n", name)
	}
	if unit.Command != nil {
		verb = string(*unit.Command)
	}
	fmt.Fprintf(script, "systemctl %s --no-block %s\n", verb, name)
}

func writeFile(script *strings.Builder, file extensionsv1alpha1.File, readSecret ReadSecret) error {
	mode := int32(0o644)
	if file.Permissions != nil {
		mode = *file.Permissions
	}
	switch {
	case file.Content.SecretRef != nil:
		data, err := readSecret(file.Content.SecretRef.Name, file.Content.SecretRef.DataKey)
		if err != nil {
			return err
		}
		writeBase64(script, file.Path, data, mode)
	case file.Content.Inline == nil:
		return fmt.Errorf("content: user data can hold inline content and Secrets only; leave images to purpose " +
			"reconcile")
	case file.Content.TransmitUnencoded != nil && *file.Content.TransmitUnencoded:
		return writePlain(script, file.Path, file.Content.Inline, mode)
	default:
		data, err := decode(file.Content.Inline)
		if err != nil {
			return err
		}
		writeBase64(script, file.Path, data, mode)
	}
	return nil
}

func decode(inline *extensionsv1alpha1.FileContentInline) ([]byte, error) {
	data, err := inline.Decode()
	if err != nil {
		return nil, fmt.Errorf("content.inline: %w", err)
	}
	return data, nil
}

const endOfFile = "END_OF_USER_DATA_FILE"

func writePlain(script *strings.Builder, target string, inline *extensionsv1alpha1.FileContentInline,
	mode int32) error {
	data, err := decode(inline)
	if err != nil {
		return err
	}
	if strings.Contains(string(data), endOfFile) {
		return fmt.Errorf("content.inline.data: must not contain %s", endOfFile)
	}
	fmt.Fprintf(script, "mkdir -p %s\ncat > %s <<'%s'\n%s\n%s\nchmod %04o %s\n", quote(path.Dir(target)), quote(target),
		endOfFile, strings.TrimSuffix(string(data), "\n"), endOfFile, mode, quote(target))
	return nil
}

func writeBase64(script *strings.Builder, target string, data []byte, mode int32) {
	fmt.Fprintf(script, "mkdir -p %s\nbase64 -d > %s <<'%s'\n%s\n%s\nchmod %04o %s\n", quote(path.Dir(target)),
		quote(target), endOfFile, base64.StdEncoding.EncodeToString(data), endOfFile, mode, quote(target))
}

// quote makes a word of the shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

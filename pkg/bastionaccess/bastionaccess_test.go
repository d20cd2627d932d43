package bastionaccess

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBjIl+ho6NDM5XvXNcbEKVxe0EDUTCqZuK4Vwh2cuPnP alice"

func access(t *testing.T, authorizedKey string) Access {
	t.Helper()
	access, err := New(authorizedKey)
	if err != nil {
		t.Fatal(err)
	}
	return access
}

// What gardenlet writes is what extensions read.
func TestUserDataIsRead(t *testing.T) {
	want := access(t, "  "+publicKey+"\n")
	got, err := Parse(want.UserData())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v", got, err)
	}
	signer, err := got.Signer()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := got.HostKeys()
	if err != nil || len(keys) != 1 || !strings.HasPrefix(keys[0], signer.PublicKey().Type()+" ") {
		t.Errorf("keys %q, %v", keys, err)
	}
	if key, err := got.PublicKey(); err != nil || key.Type() != "ssh-ed25519" {
		t.Errorf("key of the user: %v, %v", key, err)
	}
	if other := access(t, publicKey); bytes.Equal(other.HostKey, want.HostKey) {
		t.Error("two bastions have the same key")
	}
}

// Nothing in a key is read by the shell.
func TestKeysThatAreCommands(t *testing.T) {
	const key = "ssh-rsa AAAA $(reboot) `x`"
	script := string(access(t, key+"\n").UserData())
	encoded := base64.StdEncoding.EncodeToString([]byte(restrictions + " " + key + "\n"))
	if !strings.HasPrefix(script, "#!/bin/bash\n") || !strings.Contains(script, "echo "+encoded+" | base64 -d") ||
		strings.Contains(script, "reboot") {
		t.Errorf("script is\n%s", script)
	}
}

// The user of a bastion goes through it, and has no shell there, whatever lines the key has.
func TestAttackShellOfABastion(t *testing.T) {
	for name, key := range map[string]string{
		"one key": publicKey, "several keys": publicKey + "\n" + publicKey, "lines without a key": "# x\n\n" + publicKey,
		"options of the user's": `from="203.0.113.0/24" ` + publicKey,
	} {
		given := access(t, key)
		script := given.UserData()
		if read, err := Parse(script); err != nil || read.AuthorizedKey != key {
			t.Errorf("%s: read %q, %v", name, read.AuthorizedKey, err)
		}
		content, err := base64.StdEncoding.DecodeString(string(written.FindSubmatch(script)[1]))
		if err != nil {
			t.Fatal(err)
		}
		for rest := content; len(bytes.TrimSpace(rest)) > 0; {
			var options []string
			if _, _, options, rest, err = ssh.ParseAuthorizedKey(rest); err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, content)
			}
			if len(options) < 3 || strings.Join(options[:3], ",") != restrictions {
				t.Errorf("%s: options %q", name, options)
			}
		}
	}
}

func TestUserDataOfOthers(t *testing.T) {
	whole := string(access(t, publicKey).UserData())
	for name, data := range map[string]string{
		"none": "", "another script": "#!/bin/bash\nreboot\n",
		"without the bastion's key": strings.ReplaceAll(whole, pathHostKey, "/elsewhere"),
		"without the user's key":    strings.ReplaceAll(whole, pathAuthorizedKeys, "/elsewhere"),
		"no base64":                 strings.ReplaceAll(whole, "echo ", "echo ="),
	} {
		if got, err := Parse([]byte(data)); err == nil || !strings.HasPrefix(err.Error(), "user data of a bastion: ") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	wrong := Access{AuthorizedKey: "x", HostKey: []byte("x")}
	_, errKeys := wrong.HostKeys()
	_, errPublic := wrong.PublicKey()
	if errKeys == nil || errPublic == nil {
		t.Errorf("keys that are none: %v, %v", errKeys, errPublic)
	}
}

// Whatever user data is, reading it does no harm, and what was read can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("#!/bin/bash\necho YQo= | base64 -d >" + pathAuthorizedKeys +
		"\necho Yg== | base64 -d >" + pathHostKey + "\n"))
	f.Add([]byte("echo = | base64 -d >" + pathHostKey))
	lines := `from="10.0.0.1" ` + publicKey + "\n\n" + restrictions + ", x"
	f.Add(Access{AuthorizedKey: lines, HostKey: []byte("x")}.UserData())
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := Parse(data)
		if err != nil {
			return
		}
		_, _ = read.HostKeys()
		_, _ = read.PublicKey()
		if again, err := Parse(read.UserData()); err != nil || !reflect.DeepEqual(again, read) {
			t.Errorf("%+v became %+v, %v", read, again, err)
		}
	})
}

package proxyprotocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
)

func addr(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func TestHeadersSurviveTheWire(t *testing.T) {
	cases := map[string]struct{ header, want Header }{
		"IPv4": {
			Header{addr("10.3.0.5:4711"), addr("240.0.0.1:443"), "api.example.org"},
			Header{addr("10.3.0.5:4711"), addr("240.0.0.1:443"), "api.example.org"},
		},
		"IPv6": {
			Header{addr("[fd00::1]:4711"), addr("[fd00::2]:443"), "api.example.org"},
			Header{addr("[fd00::1]:4711"), addr("[fd00::2]:443"), "api.example.org"},
		},
		"IPv4 in IPv6": {
			Header{addr("[::ffff:10.3.0.5]:1"), addr("240.0.0.1:2"), "a"},
			Header{addr("10.3.0.5:1"), addr("240.0.0.1:2"), "a"},
		},
		"mixed families keep no addresses": {
			Header{addr("10.3.0.5:1"), addr("[fd00::2]:2"), "a"},
			Header{Authority: "a"},
		},
		"capital letters": {Header{Authority: "API.Example.Org"}, Header{Authority: "api.example.org"}},
		"nothing":         {Header{}, Header{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := bytes.NewReader(append(c.header.Append(nil), "rest"...))
			got, err := Read(r)
			if err != nil || got != c.want {
				t.Fatalf("got %+v, %v; want %+v", got, err, c.want)
			}
			if rest, _ := io.ReadAll(r); string(rest) != "rest" {
				t.Errorf("%q is left after the header, want %q", rest, "rest")
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	valid := string(Header{addr("10.3.0.5:1"), addr("240.0.0.1:2"), "a"}.Append(nil))
	change := func(at int, to byte) string { return valid[:at] + string([]byte{to}) + valid[at+1:] }
	cases := map[string]struct {
		input string
		err   error
	}{
		"TLS":                  {strings.Repeat("\x16\x03\x01", 10), ErrInvalid},
		"version 1":            {"PROXY TCP4 10.3.0.5 240.0.0.1 1 2\r\n", ErrInvalid},
		"version 3":            {change(12, 0x31), ErrInvalid},
		"UDP":                  {change(13, 0x12), ErrInvalid},
		"too long":             {change(14, 0x7f), ErrInvalid},
		"no room for IPv6":     {change(13, familyTCP6), ErrInvalid},
		"TLV longer than rest": {change(30, 0xff), ErrInvalid},
		"cut off":              {valid[:20], io.ErrUnexpectedEOF},
		"cut-off TLV header":   {string(append([]byte(signature), 0x21, 0, 0, 2, typeAuthority, 0)), ErrInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got, err := Read(strings.NewReader(c.input)); !errors.Is(err, c.err) {
				t.Errorf("got %+v, %v; want %v", got, err, c.err)
			}
		})
	}
}

// Strangers choose how many TLVs there are: what a header takes does not grow with them.
func TestAttackManyTLVs(t *testing.T) {
	header := append([]byte(signature), versionAndLocal, familyUnspecified)
	header = binary.BigEndian.AppendUint16(header, maxLength/3*3)
	header = append(header, bytes.Repeat([]byte{0xe0, 0, 0}, maxLength/3)...)
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := Read(bytes.NewReader(header)); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 3 {
		t.Errorf("%.0f allocations", allocations)
	}
}

// What Read accepts must survive being written and read again.
func FuzzRead(f *testing.F) {
	f.Add(Header{addr("10.3.0.5:1"), addr("240.0.0.1:2"), "a.b"}.Append(nil))
	f.Add(Header{addr("[fd00::1]:4711"), addr("[fd00::2]:443"), ""}.Append(nil))
	f.Fuzz(func(t *testing.T, input []byte) {
		first, err := Read(bytes.NewReader(input))
		if err != nil {
			return
		}
		second, err := Read(bytes.NewReader(first.Append(nil)))
		if err != nil || second.Authority != first.Authority {
			t.Fatalf("%+v became %+v, %v", first, second, err)
		}
	})
}

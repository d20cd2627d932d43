package clienthello

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// hello returns what Go's own client sends first.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	sent := make(chan []byte)
	go func() {
		buf := make([]byte, 1<<15)
		n, _ := server.Read(buf)
		sent <- buf[:n]
	}()
	go func() { _ = tls.Client(client, config).HandshakeContext(context.Background()) }()
	defer client.Close()
	return <-sent
}

// fragment splits the one record of a hello into records of size bytes.
func fragment(record []byte, size int) []byte {
	var out []byte
	for rest := record[recordHeaderLength:]; len(rest) > 0; {
		n := min(size, len(rest))
		out = append(out, record[0], record[1], record[2], byte(n>>8), byte(n))
		out = append(out, rest[:n]...)
		rest = rest[n:]
	}
	return out
}

func TestRead(t *testing.T) {
	named := hello(t, &tls.Config{ServerName: "API.Member1.Demo.Example.Org"})
	old := hello(t, &tls.Config{
		ServerName: "api.example.org", MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	unnamed := hello(t, &tls.Config{InsecureSkipVerify: true})
	cases := map[string]struct {
		input []byte
		want  string
		err   error
	}{
		"TLS 1.3 with capital letters": {input: named, want: "api.member1.demo.example.org"},
		"TLS 1.2":                      {input: old, want: "api.example.org"},
		"many records":                 {input: fragment(named, len(named)/20), want: "api.member1.demo.example.org"},
		"too many records":             {input: fragment(named, 3), err: ErrNotTLS},
		"no server name":               {input: unnamed, err: ErrNoServerName},
		"HTTP":                         {input: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), err: ErrNotTLS},
		"cut off in the header":        {input: named[:3], err: io.ErrUnexpectedEOF},
		"cut off in the body":          {input: named[:100], err: io.ErrUnexpectedEOF},
		"nothing":                      {input: nil, err: io.EOF},
		"another handshake message":    {input: []byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, err: ErrNotTLS},
		"a hello in huge records":      {input: hugeRecords(), err: ErrNotTLS},
		"a huge message":               {input: []byte{22, 3, 1, 0, 4, 1, 0xff, 0, 0}, err: ErrNotTLS},
		"empty body":                   {input: []byte{22, 3, 1, 0, 4, 1, 0, 0, 0}, err: ErrNotTLS},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			trailing := "what follows"
			r := io.MultiReader(bytes.NewReader(c.input), strings.NewReader(trailing))
			if c.err == io.EOF || c.err == io.ErrUnexpectedEOF {
				r = bytes.NewReader(c.input)
			}
			got, read, err := Read(r)
			if got != c.want || !errors.Is(err, c.err) {
				t.Fatalf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
			if !bytes.HasPrefix(c.input, read) {
				t.Error("the bytes that were read differ from the input")
			}
			if err == nil && len(read) != len(c.input) {
				t.Errorf("read %d bytes of a hello of %d", len(read), len(c.input))
			}
		})
	}
}

// hugeRecords announces more than a hello may have; what would follow is not waited for.
func hugeRecords() []byte {
	records := append([]byte{22, 3, 1, 0, 3, 1, 0, 0x40}, 22, 3, 1, 0x40, 0)
	records = append(records, make([]byte, 1<<14)...)
	return append(records, 22, 3, 1, 0x40, 0)
}

// The own parser and Go's must agree on the names of hellos that both accept.
func FuzzRead(f *testing.F) {
	f.Add(hello(f, &tls.Config{ServerName: "api.example.org"}))
	f.Add(fragment(hello(f, &tls.Config{ServerName: "a.b"}), 100))
	f.Add(hello(f, &tls.Config{InsecureSkipVerify: true}))
	f.Fuzz(func(t *testing.T, input []byte) {
		name, read, err := Read(bytes.NewReader(input))
		if !bytes.HasPrefix(input, read) {
			t.Fatal("the bytes that were read differ from the input")
		}
		if most := messageHeaderLength + maxMessageLength + maxRecords*recordHeaderLength; len(read) > most ||
			cap(read) > 2*most {
			t.Fatalf("read %d bytes into %d", len(read), cap(read))
		}
		theirs, ok := namedByGo(input)
		if !ok || err != nil && !errors.Is(err, ErrNoServerName) {
			return
		}
		if !strings.EqualFold(name, theirs) {
			t.Fatalf("got %q, Go's parser says %q", name, theirs)
		}
	})
}

var errDone = errors.New("done")

func namedByGo(input []byte) (name string, ok bool) {
	server := tls.Server(readOnly{Reader: bytes.NewReader(input)}, &tls.Config{
		GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
			name, ok = info.ServerName, true
			return nil, errDone
		},
	})
	_ = server.Handshake()
	return name, ok
}

type readOnly struct {
	net.Conn
	io.Reader
}

func (r readOnly) Read(b []byte) (int, error)  { return r.Reader.Read(b) }
func (r readOnly) Write(b []byte) (int, error) { return len(b), nil }
func (r readOnly) Close() error                { return nil }

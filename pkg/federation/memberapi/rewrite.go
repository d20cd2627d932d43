package memberapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

var (
	public = clusterv1alpha1.KarmadaGroupVersion.String()
	stored = clusterv1alpha1.GroupVersion.String()
)

// maxBody is a little more than the kube-apiserver takes.
const maxBody = 4 << 20

// toStored says the same as the body of a request in the version that the kube-apiserver serves by itself.
func toStored(body []byte, contentType string) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	if len(bytes.TrimSpace(body)) == 0 || kind == "application/json-patch+json" {
		return body, nil
	}
	if strings.HasSuffix(kind, "yaml") {
		converted, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		body = converted
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	return json.Marshal(withVersion(value))
}

// withVersion changes apiVersion wherever it stands, as in the managed fields of an object.
func withVersion(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			if key == "apiVersion" && item == public {
				value[key] = stored
				continue
			}
			value[key] = withVersion(item)
		}
	case []any:
		for i := range value {
			value[i] = withVersion(value[i])
		}
	}
	return value
}

// acceptJSON asks for nothing but what is understood here: JSON, also of tables and of metadata alone.
func acceptJSON(header http.Header) {
	var accepted []string
	for _, one := range strings.Split(strings.Join(header.Values("Accept"), ","), ",") {
		if kind, _, err := mime.ParseMediaType(one); err == nil && kind == "application/json" {
			accepted = append(accepted, strings.TrimSpace(one))
		}
	}
	// Servers may send an object as it is to whom they cannot send it as asked for.
	header.Set("Accept", strings.Join(append(accepted, "application/json"), ","))
	header.Del("Accept-Encoding")
}

// answer says an answer of the kube-apiserver in the version that was asked for. Texts cannot be mistaken for a field:
// quotes in them have a backslash.
type answer struct {
	io.Closer
	lines *bufio.Reader
	ready []byte
	err   error
}

func newAnswer(body io.ReadCloser) *answer {
	return &answer{Closer: body, lines: bufio.NewReaderSize(body, 64<<10)}
}

// Read passes on each line as soon as it is complete: events of a watch are a line each.
func (a *answer) Read(p []byte) (int, error) {
	for len(a.ready) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		var line []byte
		line, a.err = a.lines.ReadBytes('\n')
		a.ready = toPublic(line)
	}
	n := copy(p, a.ready)
	a.ready = a.ready[n:]
	return n, nil
}

func toPublic(line []byte) []byte {
	for _, between := range []string{`"apiVersion":`, `"apiVersion": `} {
		line = bytes.ReplaceAll(line, []byte(between+`"`+stored+`"`), []byte(between+`"`+public+`"`))
	}
	return line
}

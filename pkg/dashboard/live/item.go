package live

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/proxy"
)

// row has the fields that a page shows of an object. Empty ones are left out.
type row map[string]any

func (r row) set(name string, value any) {
	switch v := value.(type) {
	case string:
		if v == "" {
			return
		}
	case bool:
		if !v {
			return
		}
	case int64:
		if v == 0 {
			return
		}
	case int:
		if v == 0 {
			return
		}
	case []string:
		if len(v) == 0 {
			return
		}
	case []row:
		if len(v) == 0 {
			return
		}
	case row:
		if len(v) == 0 {
			return
		}
	case map[string]string:
		if len(v) == 0 {
			return
		}
	case nil:
		return
	}
	r[name] = value
}

// item is an object in a view.
type item struct {
	uid, namespace, name string
	version              string
	// fields of the row, or of the object's metadata in other views; filters look at them.
	fields row
	// text is what is sent.
	text json.RawMessage
	// holders are how many watches keep it; it is the feeds' to change.
	holders int
}

// metadata of an object, as far as it is shown.
type metadata struct {
	UID               string            `json:"uid"`
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	ResourceVersion   string            `json:"resourceVersion"`
	Generation        int64             `json:"generation"`
	CreationTimestamp string            `json:"creationTimestamp"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
	Labels            map[string]string `json:"labels"`
	Annotations       map[string]string `json:"annotations"`
}

// render makes an item of an object in JSON.
func (s source) render(object json.RawMessage) (*item, error) {
	var header struct {
		Metadata metadata `json:"metadata"`
	}
	if err := json.Unmarshal(object, &header); err != nil {
		return nil, fmt.Errorf("an object cannot be read: %w", err)
	}
	m := &header.Metadata
	result := &item{uid: m.UID, namespace: m.Namespace, name: m.Name, version: m.ResourceVersion}
	switch {
	case s.view == ViewObject && !proxy.IsSecret(s.group, s.resource):
		result.fields = m.row()
		text, err := s.trimmed(object)
		result.text = text
		return result, err
	case s.view == ViewRow || s.view == ViewRollout:
		fields, err := s.row(m, object)
		if err != nil {
			return nil, fmt.Errorf("%s %s/%s cannot be read: %w", s.resource, m.Namespace, m.Name, err)
		}
		result.fields = fields
	default:
		result.fields = m.meta()
	}
	var err error
	result.text, err = json.Marshal(result.fields)
	return result, err
}

// size is about what it takes of memory. Fields repeat what is in the text.
func (i *item) size() int64 {
	size := int64(len(i.text) + 256)
	if i.fields != nil {
		size += 2 * int64(len(i.text))
	}
	return size
}

// identity is what is told of an object that is gone.
func (i *item) identity() json.RawMessage {
	text, err := json.Marshal(row{"uid": i.uid, "namespace": i.namespace, "name": i.name})
	if err != nil {
		panic(err) // Strings can be written.
	}
	return text
}

// row has what all rows have.
func (m *metadata) row() row {
	r := row{"uid": m.UID, "name": m.Name}
	r.set("namespace", m.Namespace)
	r.set("created", m.CreationTimestamp)
	r.set("deleting", m.DeletionTimestamp != nil)
	return r
}

// lastApplied repeats the whole object.
const lastApplied = corev1.LastAppliedConfigAnnotation

func (m *metadata) meta() row {
	r := m.row()
	delete(m.Annotations, lastApplied)
	r.set("labels", m.Labels)
	r.set("annotations", m.Annotations)
	r.set("resourceVersion", m.ResourceVersion)
	return r
}

// trimmed is an object as pages show it.
func (s source) trimmed(object json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	out.Grow(len(object))
	err := proxy.Trim(&out, bytes.NewReader(object), proxy.HiddenOf(s.group, s.resource))
	return out.Bytes(), err
}

// short bounds texts that others wrote.
func short(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// conditions are TYPE: STATUS.
type conditions []struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (c conditions) row() map[string]string {
	result := map[string]string{}
	for _, condition := range c {
		result[condition.Type] = condition.Status
	}
	return result
}

// status of a condition; empty if there is none.
func (c conditions) status(name string) (status, message string) {
	for _, condition := range c {
		if condition.Type == name {
			return condition.Status, condition.Message
		}
	}
	return "", ""
}

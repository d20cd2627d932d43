package kills

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/managedresources"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// canonical is a state without what differs between two runs of the same operation: times, versions, and what is
// random, as keys and the checksums of keys. It has a text for each object; several may have one name without what is
// random in that. The texts are JSON; see readable.
func canonical(t *testing.T, s state) map[string][]string {
	t.Helper()
	c := canonizer{names: namesOf(s.seed)}
	all := map[string][]string{}
	for where, content := range map[string]content{"garden": s.garden, "seed": s.seed} {
		for at, stored := range content.objects {
			if _, isPod := stored.(*corev1.Pod); isPod {
				// How often its kubelet was asked does not matter.
				continue
			}
			value, err := plain(stored)
			if err != nil {
				t.Fatalf("%v: %v", at, err)
			}
			name := c.text(fmt.Sprintf("%s %s %s/%s", where, at.resource.Resource, at.namespace, at.name))
			all[name] = append(all[name], render(t, c.value(value)))
		}
	}
	for at, stored := range s.cluster.objects {
		all[fmt.Sprintf("shoot %s %s/%s", at.resource, at.namespace, at.name)] =
			[]string{render(t, c.value(stored["metadata"]))}
	}
	for _, texts := range all {
		slices.Sort(texts)
	}
	return all
}

// plain is an object as JSON has it, a Secret with readable data.
func plain(stored runtime.Object) (any, error) {
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return nil, err
	}
	secret, ok := stored.(*corev1.Secret)
	if !ok || len(secret.Data) == 0 {
		return value, nil
	}
	if strings.HasPrefix(secret.Name, managedresources.SecretName("")) {
		value["data"], err = keptObjects(secret.Data)
		return value, err
	}
	data := object{}
	for name, content := range secret.Data {
		data[name] = string(content)
	}
	value["data"] = data
	return value, nil
}

// keptObjects are those in the Secret of a ManagedResource.
func keptObjects(data map[string][]byte) (any, error) {
	decoded, err := managedresources.Decode(data)
	if err != nil {
		return nil, err
	}
	objects := object{}
	for _, kept := range decoded {
		objects[kept.GetKind()+" "+kept.GetNamespace()+"/"+kept.GetName()] = kept.Object
	}
	return objects, nil
}

func render(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readable are the texts as YAML, which takes several times as long to write.
func readable(t *testing.T, texts map[string][]string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for name, list := range texts {
		for _, text := range list {
			written, err := yaml.JSONToYAML([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = append(all[name], string(written))
		}
	}
	return all
}

// namesOf gives the managed secrets names without what is random: that of the configuration, and how many newer ones
// there are.
func namesOf(c content) *strings.Replacer {
	byConfiguration := map[string][]*corev1.Secret{}
	for _, stored := range c.objects {
		if secret, ok := stored.(*corev1.Secret); ok &&
			secret.Labels[secrets.LabelManagedBy] == secrets.LabelManagedByValue {
			at := secret.Namespace + "/" + secret.Labels[secrets.LabelName]
			byConfiguration[at] = append(byConfiguration[at], secret)
		}
	}
	names := map[string]string{}
	for _, list := range byConfiguration {
		slices.SortFunc(list, func(a, b *corev1.Secret) int {
			return cmp.Or(int(issued(b)-issued(a)), size(b)-size(a))
		})
		for i, secret := range list {
			names[secret.Name] = fmt.Sprintf("%s~%d", secret.Labels[secrets.LabelName], i)
		}
	}
	var pairs []string
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) }) {
		pairs = append(pairs, name, names[name])
	}
	return strings.NewReplacer(pairs...)
}

func issued(secret *corev1.Secret) int64 {
	seconds, _ := strconv.ParseInt(secret.Labels[secrets.LabelIssuedAt], 10, 64)
	return seconds
}

// size tells apart what was made within one second: bundles of one and of two.
func size(secret *corev1.Secret) int {
	sum := 0
	for _, content := range secret.Data {
		sum += len(content)
	}
	return sum
}

// canonizer replaces what differs.
type canonizer struct{ names *strings.Replacer }

// setByServers are the fields that tell versions and times of an object.
var setByServers = []string{
	"resourceVersion", "uid", "generation", "observedGeneration", "creationTimestamp", "managedFields",
}

// value replaces within a value of JSON.
func (c canonizer) value(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		replaced := object{}
		for name, element := range typed {
			if !slices.Contains(setByServers, name) {
				replaced[c.text(name)] = c.value(element)
			}
		}
		return replaced
	case []any:
		replaced := make([]any, 0, len(typed))
		for _, element := range typed {
			replaced = append(replaced, c.value(element))
		}
		return replaced
	case string:
		return c.text(typed)
	}
	return value
}

// differing are patterns of what differs in texts, in the order in which they are replaced.
var differing = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`-----BEGIN ([A-Z ]+)-----[^-]*-----END [A-Z ]+-----`), "<$1>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`\bkey\d{9,10}\b`), "key<time>"},
	{regexp.MustCompile(`\bssh-rsa [A-Za-z0-9+/=]+`), "<ssh key>"},
	{regexp.MustCompile(`\bheader\.claims\.[A-Za-z0-9_-]+`), "<token>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<request>"},
	{regexp.MustCompile(`\b[0-9a-f]{8,64}\b`), "<sum>"},
}

// encoded is what may be text in base64, or random.
var encoded = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}`)

// shortest is how long what differs is at least.
const shortest = 8

// same are the texts in which nothing differs. They return in all states.
var same sync.Map

// text replaces within a text.
func (c canonizer) text(text string) string {
	if !utf8.ValidString(text) {
		return "<bytes>"
	}
	if len(text) < shortest {
		return text
	}
	text = c.names.Replace(text)
	if _, found := same.Load(text); found {
		return text
	}
	replaced := c.replace(text)
	if replaced == text {
		same.Store(text, true)
	}
	return replaced
}

// replace replaces all but names.
func (c canonizer) replace(text string) string {
	for _, d := range differing {
		text = d.pattern.ReplaceAllString(text, d.with)
	}
	return encoded.ReplaceAllStringFunc(text, func(found string) string {
		decoded, err := base64.StdEncoding.DecodeString(found)
		switch {
		case err != nil:
			return found
		case utf8.Valid(decoded):
			return "<" + c.text(string(decoded)) + ">"
		}
		return "<random>"
	})
}

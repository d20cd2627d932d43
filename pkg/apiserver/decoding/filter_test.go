package decoding

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// aboutShoot is what requests of these tests are about.
var aboutShoot = &apirequest.RequestInfo{
	IsResourceRequest: true, APIGroup: gardencorev1beta1.GroupName, APIVersion: "v1beta1", Resource: "shoots",
	Name: "a",
}

const maxBytes = 3 << 20

// serve sends a request through the filter, and returns the answer and the body that was passed on.
func serve(t *testing.T, about *apirequest.RequestInfo, method, contentType, accept string,
	body io.Reader) (*http.Response, []byte) {
	t.Helper()
	request := httptest.NewRequest(method, "/apis", body)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Accept", accept)
	request = request.WithContext(apirequest.WithRequestInfo(request.Context(), about))
	var passed []byte
	next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var err error
		if passed, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
	})
	answer := httptest.NewRecorder()
	filter := &Filter{
		Scheme: apis.GardenScheme(), Codecs: serializer.NewCodecFactory(apis.GardenScheme()), MaxBytes: maxBytes,
	}
	filter.Wrap(next).ServeHTTP(answer, request)
	return answer.Result(), passed
}

func TestFilter(t *testing.T) {
	hostile := fmt.Sprintf(workersOfShoots, items(sizeOfHuge/3, `{}`))
	labels := inMetadata("labels", `{`+items(MaxMetadata+1, `"%d":""`)+`}`)
	for _, test := range []struct {
		name, method, contentType, body string
		code                            int
	}{
		{"object", http.MethodPost, "application/json", `{"a":1}`, 200},
		{"no content type", http.MethodPut, "", `{"a":1}`, 200},
		{"no body", http.MethodPost, "application/json", "", 200},
		{"hostile", http.MethodPost, "application/json", hostile, 422},
		{"hostile without a content type", http.MethodPut, "", hostile, 422},
		{"hostile with a parameter", http.MethodPost, "Application/JSON; charset=utf-8", hostile, 422},
		{"hostile YAML", http.MethodPost, "application/yaml", hostile, 422},
		{"patch", http.MethodPatch, strategicPatch, `{"a":1}`, 200},
		{"hostile patch", http.MethodPatch, strategicPatch + "; charset=utf-8", hostile, 422},
		{"labels", http.MethodPatch, mergePatch, labels, 422},
		{"values", http.MethodPost, "application/json", `{` + items(14, `"%d":[`+items(4000, `1`)+`]`) + `}`, 413},
		{"not JSON", http.MethodPost, "application/json", `{"a"`, 400},
		{"too deep", http.MethodPost, "application/json", nested(MaxDepth + 1), 400},
		{"large", http.MethodPost, "application/json", `{"a":"` + strings.Repeat("a", maxBytes) + `"}`, 413},
		{"format that is not served", http.MethodPost, "text/plain", hostile, 200},
		{"deletion", http.MethodDelete, "application/json", `{"kind":"DeleteOptions"}`, 200},
		{
			"large deletion", http.MethodDelete, "application/json",
			`{"dryRun":["` + strings.Repeat("a", MaxDeleteOptions) + `"]}`, 413,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer, passed := serve(t, aboutShoot, test.method, test.contentType, "application/json",
				strings.NewReader(test.body))
			if answer.StatusCode != test.code {
				body, _ := io.ReadAll(answer.Body)
				t.Fatalf("answered %d, want %d: %s", answer.StatusCode, test.code, body)
			}
			if test.code == 200 && string(passed) != test.body {
				t.Errorf("passed on %.50q, want %.50q", passed, test.body)
			}
			if test.code != 200 && passed != nil {
				t.Error("a refused body was passed on")
			}
		})
	}
}

func TestOtherRequestsAreNotRead(t *testing.T) {
	about := &apirequest.RequestInfo{Path: "/seedauthorizer"}
	if answer, passed := serve(t, about, http.MethodPost, "application/json", "",
		strings.NewReader(`{"a"`)); answer.StatusCode != 200 || string(passed) != `{"a"` {
		t.Errorf("answered %d and passed on %q", answer.StatusCode, passed)
	}
}

// Refusals are a Status in the format that the client accepts.
func TestRefusalsAreNegotiated(t *testing.T) {
	hostile := []byte(fmt.Sprintf(workersOfShoots, items(MaxItems+1, `{}`)))
	codecs := serializer.NewCodecFactory(apis.GardenScheme())
	for _, format := range []string{jsonFormat, yamlFormat, protobufFormat} {
		t.Run(format, func(t *testing.T) {
			answer, _ := serve(t, aboutShoot, http.MethodPost, jsonFormat, format, bytes.NewReader(hostile))
			if got := answer.Header.Get("Content-Type"); got != format {
				t.Errorf("answered in %q", got)
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), format)
			status := &metav1.Status{}
			if _, _, err := info.Serializer.Decode(body, nil, status); err != nil {
				t.Fatal(err)
			}
			if status.Code != 422 || status.Reason != metav1.StatusReasonInvalid ||
				status.Details.Group != gardencorev1beta1.GroupName ||
				status.Details.Causes[0].Field != "spec.provider.workers" {
				t.Errorf("status = %+v", status)
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBodyThatDoesNotArrive(t *testing.T) {
	if answer, _ := serve(t, aboutShoot, http.MethodPost, jsonFormat, jsonFormat, broken{}); answer.StatusCode != 400 {
		t.Errorf("answered %d, want 400", answer.StatusCode)
	}
}

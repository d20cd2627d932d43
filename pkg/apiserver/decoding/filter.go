package decoding

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Filter refuses requests whose bodies cost too much to read.
type Filter struct {
	// Scheme knows the kinds that bodies can be of.
	Scheme *runtime.Scheme
	// Codecs write refusals in the format that the client accepts.
	Codecs runtime.NegotiatedSerializer
	// MaxBytes is the size of the largest body.
	MaxBytes int64
}

// Wrap returns a handler that passes on what is not refused. The context of requests tells what they are about, so it
// comes after authentication and authorization: nobody else's bodies are read.
func (f *Filter) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		about, ok := apirequest.RequestInfoFrom(r.Context())
		if !ok || !about.IsResourceRequest || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body, err := f.read(r, about)
		if err != nil {
			version := schema.GroupVersion{Group: about.APIGroup, Version: about.APIVersion}
			responsewriters.ErrorNegotiated(err, f.Codecs, version, w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// read returns the body of a request unless it is refused.
func (f *Filter) read(r *http.Request, about *apirequest.RequestInfo) ([]byte, error) {
	defer r.Body.Close() //nolint:errcheck // everything was read
	limit := f.MaxBytes
	if r.Method == http.MethodDelete {
		limit = min(limit, MaxDeleteOptions)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, apierrors.NewBadRequest("the body of the request did not arrive: " + err.Error())
	}
	if refused := f.check(r, body, limit); refused != nil {
		return nil, refused.status(schema.GroupResource{Group: about.APIGroup, Resource: about.Resource}, about.Name)
	}
	return body, nil
}

func (f *Filter) check(r *http.Request, body []byte, limit int64) *refusal {
	if int64(len(body)) > limit {
		return tooLarge("the body of the request has more than %d bytes", limit)
	}
	if r.Method == http.MethodDelete || len(body) == 0 {
		return nil
	}
	return inspect(f.Scheme, formatOf(r), body)
}

// formatOf reads the content type as the handlers of requests do.
func formatOf(r *http.Request) string {
	contentType := r.Header.Get("Content-Type")
	if r.Method == http.MethodPatch {
		format, _, _ := strings.Cut(contentType, ";")
		return format
	}
	if contentType == "" {
		return runtime.ContentTypeJSON
	}
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return mediaType
}

// inspect refuses a body that costs too much to read. Formats that are not served are left to the handlers, which do
// not read them.
func inspect(scheme *runtime.Scheme, format string, body []byte) *refusal {
	c, managed := &counter{maxItems: MaxItems, maxValues: MaxValues}, &managedFields{}
	var r *refusal
	switch format {
	case runtime.ContentTypeJSON, string(types.MergePatchType):
		r = scanJSON(body, c, managed)
	case runtime.ContentTypeYAML:
		r = scanYAML(body, c, managed)
	case runtime.ContentTypeProtobuf:
		r = scanProtobuf(body, scheme, c, managed)
	case string(types.StrategicMergePatchType):
		c.maxItems, c.maxValues = MaxMergedItems, MaxMergedValues
		r = scanJSON(body, c, managed)
	case string(types.ApplyYAMLPatchType):
		c.maxItems, c.maxValues = MaxMergedItems, MaxMergedValues
		r = scanYAML(body, c, managed)
	case string(types.JSONPatchType):
		c.maxItems, c.areOperations = MaxMergedItems, true
		r = scanJSON(body, c, nil)
	}
	if r != nil {
		return r
	}
	if r := c.limitError(); r != nil {
		return r
	}
	return managed.limitError()
}

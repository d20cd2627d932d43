package storetest

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// ABS is the part of Azure Blob Storage that a store needs. It verifies the signatures of requests and the checksums of
// what is put.
type ABS struct {
	Server
	Account string
	// key that requests must be signed with.
	key []byte
	// blocks of each blob that no list has made part of it.
	blocks map[string]map[string][]byte
}

// NewABS starts a server with an empty container, which ends with the test.
func NewABS(t *testing.T) *ABS {
	t.Helper()
	s := &ABS{Account: "account", key: []byte("the first key"), blocks: map[string]map[string][]byte{}}
	s.start(t, s.answer)
	return s
}

// Options are those of a store in the server's container, with the first key.
func (s *ABS) Options() store.ABSOptions {
	credentials := s.Credentials()
	return store.ABSOptions{
		Connection: s.connection(), Domain: "example.com", Bucket: s.Bucket,
		Credentials: func() (store.ABSCredentials, error) { return credentials, nil },
	}
}

// Credentials are those that the server takes.
func (s *ABS) Credentials() store.ABSCredentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.ABSCredentials{
		StorageAccount: s.Account, StorageKey: base64.StdEncoding.EncodeToString(s.key),
	}
}

// Rotate has the server take another key only.
func (s *ABS) Rotate(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = []byte(key)
}

// Fail answers as Azure does.
func (s *ABS) Fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Ms-Error-Code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: message})
}

func (s *ABS) answer(w http.ResponseWriter, r request) {
	container, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	switch {
	case r.Host != s.Account+".example.com" || r.Header.Get("Authorization") != s.signature(r):
		s.Fail(w, http.StatusForbidden, "AuthenticationFailed", "The signature is another: "+s.signature(r))
	case container != s.Bucket:
		s.Fail(w, http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
	case name == "" && query.Get("restype") == "container" && query.Get("comp") == "list":
		s.list(w, query.Get("prefix"), query.Get("marker"))
	case name != "" && r.Method == http.MethodPut:
		s.put(w, r, name)
	case name != "" && (r.Method == http.MethodGet || r.Method == http.MethodDelete):
		s.object(w, r, name)
	default:
		s.Fail(w, http.StatusBadRequest, "InvalidUri", "What is this?")
	}
}

// signature is what Shared Key authorization wants a request to have, as Microsoft describes it.
func (s *ABS) signature(r request) string {
	length := ""
	if len(r.body) > 0 {
		length = strconv.Itoa(len(r.body))
	}
	lines := []string{r.Method, r.Header.Get("Content-Encoding"), r.Header.Get("Content-Language"), length}
	for _, name := range []string{
		"Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since",
		"Range",
	} {
		lines = append(lines, r.Header.Get(name))
	}
	var headers []string
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			headers = append(headers, name+":"+strings.TrimSpace(values[0]))
		}
	}
	slices.Sort(headers)
	lines = append(append(lines, headers...), "/"+s.Account+r.URL.EscapedPath())
	var parameters []string
	for name, values := range r.URL.Query() {
		slices.Sort(values)
		parameters = append(parameters, strings.ToLower(name)+":"+strings.Join(values, ","))
	}
	slices.Sort(parameters)
	mac := hmac.New(sha256.New, s.key)
	_, _ = mac.Write([]byte(strings.Join(append(lines, parameters...), "\n")))
	return "SharedKey " + s.Account + ":" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// put answers what puts a blob, a block or a list of blocks.
func (s *ABS) put(w http.ResponseWriter, r request, name string) {
	sum := md5.Sum(r.body)
	comp := r.URL.Query().Get("comp")
	if comp != "blocklist" && r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]) {
		s.Fail(w, http.StatusBadRequest, "Md5Mismatch", "The MD5 value is missing or wrong.")
		return
	}
	switch {
	case comp == "block":
		if s.blocks[name] == nil {
			s.blocks[name] = map[string][]byte{}
		}
		s.blocks[name][r.URL.Query().Get("blockid")] = r.body
	case comp == "blocklist":
		if !s.commit(r, name) {
			s.Fail(w, http.StatusBadRequest, "InvalidBlockList", "The specified block list is invalid.")
			return
		}
	case comp == "" && r.Header.Get("X-Ms-Blob-Type") == "BlockBlob":
		s.keep(r, name, r.body)
	default:
		s.Fail(w, http.StatusBadRequest, "InvalidHeaderValue", "What is this?")
		return
	}
	w.WriteHeader(http.StatusCreated)
}

func (s *ABS) keep(r request, name string, content []byte) {
	checksum, _ := base64.StdEncoding.DecodeString(r.Header.Get("X-Ms-Blob-Content-Md5"))
	s.objects[name] = object{content, time.Now(), checksum}
	delete(s.blocks, name)
}

// commit makes a blob of blocks that were put.
func (s *ABS) commit(r request, name string) bool {
	var list struct{ Latest []string }
	if xml.Unmarshal(r.body, &list) != nil {
		return false
	}
	var whole []byte
	for _, id := range list.Latest {
		block, found := s.blocks[name][id]
		if !found {
			return false
		}
		whole = append(whole, block...)
	}
	s.keep(r, name, whole)
	return true
}

func (s *ABS) object(w http.ResponseWriter, r request, name string) {
	object, found := s.objects[name]
	if !found {
		s.Fail(w, http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
		return
	}
	if r.Method == http.MethodDelete {
		delete(s.objects, name)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(object.content)))
	w.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(object.checksum))
	w.Header().Set("Last-Modified", object.modified.UTC().Format(http.TimeFormat))
	_, _ = w.Write(object.content)
}

type absProperties struct {
	LastModified  string `xml:"Last-Modified"`
	ContentLength int    `xml:"Content-Length"`
}

type absBlob struct {
	Name       string
	Properties absProperties
}

func (s *ABS) list(w http.ResponseWriter, prefix, marker string) {
	names := s.sorted(prefix, marker)
	result := struct {
		XMLName    xml.Name `xml:"EnumerationResults"`
		Blobs      struct{ Blob []absBlob }
		NextMarker string
	}{}
	if len(names) > pageSize {
		names, result.NextMarker = names[:pageSize], names[pageSize-1]
	}
	for _, name := range names {
		object := s.objects[name]
		result.Blobs.Blob = append(result.Blobs.Blob, absBlob{Name: name, Properties: absProperties{
			object.modified.UTC().Format(http.TimeFormat), len(object.content),
		}})
	}
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(result)
}

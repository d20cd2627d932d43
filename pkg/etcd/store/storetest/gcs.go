package storetest

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/store"
)

// GCS is the part of Google Cloud Storage's JSON API that a store needs, and the service that issues tokens. It
// verifies the signatures of what tokens are asked for with, tokens, and the checksums of what is put.
type GCS struct {
	Server
	// Lifetime of tokens in seconds, as the server tells it.
	Lifetime int

	tokens   map[string]bool
	issued   int
	keyID    string
	sessions map[string]*gcsSession
}

type gcsSession struct {
	name    string
	content []byte
}

// serviceAccount is the key of the account; making one takes long.
var serviceAccount = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

const clientEmail = "backups@project.iam.gserviceaccount.com"

// NewGCS starts a server with an empty bucket, which ends with the test.
func NewGCS(t *testing.T) *GCS {
	t.Helper()
	s := &GCS{Lifetime: 3600, tokens: map[string]bool{}, keyID: "one", sessions: map[string]*gcsSession{}}
	s.start(t, s.answer)
	return s
}

// Options are those of a store in the server's bucket, with the first key.
func (s *GCS) Options() store.GCSOptions {
	credentials := s.Credentials()
	return store.GCSOptions{
		Connection: s.connection(), Endpoint: s.URL, Bucket: s.Bucket,
		Credentials: func() (store.GCSCredentials, error) { return credentials, nil },
	}
}

// Credentials are those that the server takes.
func (s *GCS) Credentials() store.GCSCredentials {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.GCSCredentials{
		ClientEmail: clientEmail, PrivateKeyID: s.keyID, TokenURI: s.URL + "/token",
		PrivateKey: string(pem.EncodeToMemory(&pem.Block{
			Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(serviceAccount()),
		})),
	}
}

// ServiceAccount is the credentials as Google gives them out.
func (s *GCS) ServiceAccount() string {
	credentials := s.Credentials()
	text, _ := json.Marshal(map[string]string{
		"type": "service_account", "client_email": credentials.ClientEmail, "private_key": credentials.PrivateKey,
		"private_key_id": credentials.PrivateKeyID, "token_uri": credentials.TokenURI,
	})
	return string(text)
}

// Rotate has the server take another key only. Tokens of the one before are no longer taken.
func (s *GCS) Rotate(keyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keyID = keyID
	clear(s.tokens)
}

// Revoke has the server take none of the tokens that it has issued.
func (s *GCS) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Issued is how many tokens there were.
func (s *GCS) Issued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued
}

// Uploads is how many uploads in parts are neither completed nor aborted.
func (s *GCS) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Fail answers as Google does.
func (s *GCS) Fail(w http.ResponseWriter, status int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []map[string]string{{"reason": reason, "message": message}},
	}})
}

func (s *GCS) answer(w http.ResponseWriter, r request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	objects := "/storage/v1/b/" + s.Bucket + "/o"
	session := s.sessions[r.URL.Query().Get("upload_id")]
	switch path := r.URL.EscapedPath(); {
	case path == "/token":
		s.issue(w, r)
	case !s.tokens[token]:
		s.Fail(w, http.StatusUnauthorized, "authError", "Invalid Credentials: "+token)
	case path == "/upload"+objects && r.URL.Query().Has("upload_id"):
		s.resume(w, r, session)
	case path == "/upload"+objects && r.Method == http.MethodPost:
		s.upload(w, r)
	case path == objects && r.Method == http.MethodGet:
		s.list(w, r)
	case strings.HasPrefix(path, objects+"/") && !strings.Contains(strings.TrimPrefix(path, objects+"/"), "/"):
		s.object(w, r, strings.TrimPrefix(r.URL.Path, objects+"/"))
	default:
		s.Fail(w, http.StatusNotFound, "notFound", "The specified bucket does not exist.")
	}
}

// issue gives a token for an assertion that the account's key has signed.
func (s *GCS) issue(w http.ResponseWriter, r request) {
	values, err := url.ParseQuery(string(r.body))
	if err == nil {
		err = s.verify(values.Get("assertion"))
	}
	if err == nil && values.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		err = fmt.Errorf("another type of grant")
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]string{
			"error": "invalid_grant", "error_description": err.Error() + ": " + values.Get("assertion"),
		})
		return
	}
	s.issued++
	token := fmt.Sprintf("ya29.%d-%s", s.issued, rand.Text())
	s.tokens[token] = true
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": s.Lifetime,
	})
}

// verify holds an assertion to what RFC 7523 and Google want.
func (s *GCS) verify(assertion string) error {
	signed, signature, _ := cutLast(assertion, ".")
	head, claims, found := strings.Cut(signed, ".")
	if !found {
		return fmt.Errorf("not a JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(signed))
	if err := rsa.VerifyPKCS1v15(&serviceAccount().PublicKey, crypto.SHA256, sum[:], raw); err != nil {
		return err
	}
	var header struct{ Alg, Kid string }
	var claim struct {
		Iss, Aud, Scope string
		Iat, Exp        int64
	}
	if decodeJWT(head, &header) != nil || decodeJWT(claims, &claim) != nil {
		return fmt.Errorf("not a JWT")
	}
	now := time.Now().Unix()
	switch {
	case header.Alg != "RS256" || header.Kid != s.keyID:
		return fmt.Errorf("another key")
	case claim.Iss != clientEmail || claim.Aud != s.URL+"/token" || !strings.Contains(claim.Scope, "devstorage"):
		return fmt.Errorf("other claims")
	case claim.Iat > now+60 || claim.Exp < now || claim.Exp > claim.Iat+3600:
		return fmt.Errorf("another time")
	}
	return nil
}

func decodeJWT(text string, into any) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func cutLast(text, separator string) (string, string, bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

func crcOf(content []byte) string {
	sum := crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// upload answers what puts an object in one request, and what begins a session.
func (s *GCS) upload(w http.ResponseWriter, r request) {
	var described struct{ Name, CRC32C string }
	if r.URL.Query().Get("uploadType") == "resumable" {
		if json.Unmarshal(r.body, &described) != nil || described.Name == "" {
			s.Fail(w, http.StatusBadRequest, "required", "Required")
			return
		}
		id := rand.Text()
		s.sessions[id] = &gcsSession{name: described.Name}
		w.Header().Set("Location", s.URL+r.URL.EscapedPath()+"?uploadType=resumable&upload_id="+id)
		return
	}
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		s.Fail(w, http.StatusBadRequest, "badContent", "not multipart/related")
		return
	}
	var parts [][]byte
	reader := multipart.NewReader(bytes.NewReader(r.body), parameters["boundary"])
	for part, err := reader.NextRawPart(); err == nil; part, err = reader.NextRawPart() {
		content, _ := io.ReadAll(part)
		parts = append(parts, content)
	}
	if len(parts) != 2 || json.Unmarshal(parts[0], &described) != nil || described.CRC32C != crcOf(parts[1]) {
		s.Fail(w, http.StatusBadRequest, "invalid", "Provided CRC32C does not match")
		return
	}
	s.keep(w, described.Name, parts[1])
}

func (s *GCS) keep(w http.ResponseWriter, name string, content []byte) {
	s.objects[name] = object{content: content, modified: time.Now()}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		"name": name, "size": strconv.Itoa(len(content)), "crc32c": crcOf(content),
	})
}

// resume takes the next part of a session, of which it keeps only whole 256 KiB until the last.
func (s *GCS) resume(w http.ResponseWriter, r request, session *gcsSession) {
	id := r.URL.Query().Get("upload_id")
	if session == nil {
		s.Fail(w, http.StatusNotFound, "notFound", "no such session")
		return
	}
	if r.Method == http.MethodDelete {
		delete(s.sessions, id)
		w.WriteHeader(499)
		return
	}
	var from, to int
	var total string
	_, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%s", &from, &to, &total)
	if err != nil || from != len(session.content) || to-from+1 != len(r.body) {
		s.Fail(w, http.StatusBadRequest, "invalid", "Invalid Content-Range")
		return
	}
	if total != "*" {
		if total != strconv.Itoa(to+1) {
			s.Fail(w, http.StatusBadRequest, "invalid", "Invalid Content-Range")
			return
		}
		delete(s.sessions, id)
		s.keep(w, session.name, append(session.content, r.body...))
		return
	}
	session.content = append(session.content, r.body[:len(r.body)&^(256<<10-1)]...)
	w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(session.content)-1))
	w.WriteHeader(http.StatusPermanentRedirect)
}

func (s *GCS) object(w http.ResponseWriter, r request, name string) {
	object, found := s.objects[name]
	if !found {
		s.Fail(w, http.StatusNotFound, "notFound", "No such object: "+name)
		return
	}
	switch {
	case r.Method == http.MethodDelete:
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet && r.URL.Query().Get("alt") == "media":
		w.Header().Set("Content-Length", strconv.Itoa(len(object.content)))
		w.Header().Add("X-Goog-Hash", "crc32c="+crcOf(object.content))
		w.Header().Add("X-Goog-Hash", "md5=AAAA")
		_, _ = w.Write(object.content)
	default:
		s.Fail(w, http.StatusBadRequest, "invalid", "What is this?")
	}
}

func (s *GCS) list(w http.ResponseWriter, r request) {
	query := r.URL.Query()
	names := s.sorted(query.Get("prefix"), query.Get("pageToken"))
	result := map[string]any{"kind": "storage#objects"}
	if len(names) > pageSize {
		names = names[:pageSize]
		result["nextPageToken"] = names[pageSize-1]
	}
	var items []map[string]string
	for _, name := range names {
		object := s.objects[name]
		items = append(items, map[string]string{
			"name": name, "size": strconv.Itoa(len(object.content)), "updated": object.modified.Format(time.RFC3339Nano),
		})
	}
	if len(items) > 0 {
		result["items"] = items
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result)
}

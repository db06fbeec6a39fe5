package lab

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// RegistryPassword is the password of every user of a [Registry].
const RegistryPassword = "open sesame"

// A Registry serves images over plain HTTP on a loopback address, which runtimes accept
// without configuration. It implements only the part of the OCI distribution API that
// pulls use; images are added with its methods.
type Registry struct {
	// Host is the prefix of the names of its images: "127.0.0.1:40123".
	Host string

	t testing.TB

	// mu guards the fields below.
	mu     sync.Mutex
	repos  map[string]*repository
	asked  []string
	held   chan struct{} // closed: nothing is held
	server *httptest.Server
}

type repository struct {
	users []string // users that may pull; none: no authentication
	blobs map[string]blob
	tags  map[string]string // to digests
}

type blob struct {
	mediaType string
	data      []byte
}

// NewRegistry starts an empty registry, which the test's cleanup stops.
func NewRegistry(t testing.TB) *Registry {
	t.Helper()
	r := &Registry{t: t, repos: map[string]*repository{}, held: make(chan struct{})}
	close(r.held)
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	r.Host = r.server.Listener.Addr().String()
	t.Cleanup(func() {
		r.Release()
		r.server.Close()
	})
	return r
}

// PushBusybox adds an image of busybox with a name such as "team/tool:1", and returns its
// full name. The image has a file /name that differs from those of other images, because
// otherwise a daemon would have the layer already. Only the given users may pull from its
// repository; if there are none, no authentication is required.
func (r *Registry) PushBusybox(name string, users ...string) string {
	r.t.Helper()
	return r.Push(r.busybox(name), name, users...)
}

// PushLargeBusybox is PushBusybox with a file /data of size incompressible bytes.
func (r *Registry) PushLargeBusybox(name string, size int) string {
	r.t.Helper()
	img := r.busybox(name)
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	img.Files = append(img.Files, File{Path: "data", Mode: 0o644, Data: data})
	return r.Push(img, name)
}

func (r *Registry) busybox(name string) Image {
	r.t.Helper()
	img, err := BusyboxImage()
	if err != nil {
		r.t.Fatalf("lab: build an image: %v", err)
	}
	img.Files = append(img.Files, File{Path: "name", Mode: 0o644, Data: []byte(r.Host + "/" + name)})
	return img
}

// Push adds an image; its Ref is ignored.
func (r *Registry) Push(img Image, name string, users ...string) string {
	r.t.Helper()
	m, err := img.Manifest()
	if err != nil {
		r.t.Fatal(err)
	}
	path, tag, _ := strings.Cut(name, ":")
	r.mu.Lock()
	defer r.mu.Unlock()
	repo := r.repos[path]
	if repo == nil {
		repo = &repository{blobs: map[string]blob{}, tags: map[string]string{}}
		r.repos[path] = repo
	}
	repo.users = users
	repo.tags[tag] = "sha256:" + digest(m.Manifest)
	repo.blobs["sha256:"+digest(m.Manifest)] = blob{ManifestType, m.Manifest}
	for _, data := range [][]byte{m.Config, m.Layer} {
		repo.blobs["sha256:"+digest(data)] = blob{"application/octet-stream", data}
	}
	return r.Host + "/" + name
}

// Hold blocks pulls at the download of the image's content until Release.
func (r *Registry) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = make(chan struct{})
}

// Release ends a Hold. Without a Hold it does nothing.
func (r *Registry) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.held:
	default:
		close(r.held)
	}
}

// Asked returns the requests for tags since the last call, as "user path:tag status".
// Runtimes try without a user first.
func (r *Registry) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = nil
	return asked
}

// serve answers /v2/, /v2/<path>/manifests/<tag or digest> and
// /v2/<path>/blobs/<digest>.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	rest, ok := strings.CutPrefix(req.URL.Path, "/v2/")
	if !ok || req.Method != http.MethodGet && req.Method != http.MethodHead {
		http.Error(w, "not here", http.StatusNotFound)
		return
	}
	if rest == "" {
		return
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 3 {
		http.Error(w, "not here", http.StatusNotFound)
		return
	}
	path, kind, ref := strings.Join(parts[:len(parts)-2], "/"), parts[len(parts)-2], parts[len(parts)-1]
	user, password, _ := req.BasicAuth()
	status, found, held := r.find(path, kind, ref, user, password)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
	}
	if status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
		return
	}
	if kind == "blobs" {
		select {
		case <-held:
		case <-req.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", found.mediaType)
	w.Header().Set("Content-Length", fmt.Sprint(len(found.data)))
	w.Header().Set("Docker-Content-Digest", "sha256:"+digest(found.data))
	if req.Method == http.MethodGet {
		w.Write(found.data) // an error means that the client has disconnected
	}
}

// find returns the manifest or blob if the user may pull it.
func (r *Registry) find(path, kind, ref, user, password string) (status int, found blob, held chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind == "manifests" && !strings.HasPrefix(ref, "sha256:") {
		asked := fmt.Sprintf("%s %s:%s", user, path, ref)
		defer func() { r.asked = append(r.asked, fmt.Sprint(asked, " ", status)) }()
	}
	repo := r.repos[path]
	if repo == nil {
		return http.StatusNotFound, found, nil
	}
	if len(repo.users) > 0 && (password != RegistryPassword || !slices.Contains(repo.users, user)) {
		return http.StatusUnauthorized, found, nil
	}
	if by := repo.tags[ref]; kind == "manifests" && by != "" {
		ref = by
	}
	found, ok := repo.blobs[ref]
	if !ok {
		return http.StatusNotFound, found, nil
	}
	return http.StatusOK, found, r.held
}

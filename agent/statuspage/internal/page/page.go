package page

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Config configures a [Handler].
type Config struct {
	// Node returns the state of the node. Required. It is called on the goroutine of a
	// request, not concurrently, and should take less than a second: what takes longer
	// should be left out and reported in Node.Problems. ctx is done when the request
	// is.
	Node func(ctx context.Context) Node

	// Log returns the last lines of the log at a path, oldest first, of a container of a pod.
	// It is called for the containers of a pod when its page is requested, and must not block.
	// Nil: the page has the paths only.
	Log func(p *Pod, path string) ([]string, error)

	// Refresh is the time after which an open page is refreshed. Zero: 5 seconds. A
	// negative value disables it.
	Refresh time.Duration

	// Links are the paths for programs that a page links to, relative to it:
	// "healthz". Nil: none.
	Links []string

	// Fresh is how long a Node is reused for further requests. Zero: 1 second.
	Fresh time.Duration
}

// A Handler is an http.Handler that serves the pages of a node.
type Handler struct {
	cfg   Config
	mux   *http.ServeMux
	pages *template.Template

	turn chan struct{} // full while Config.Node is called; guards the fields below
	node Node
	got  time.Time
}

// New returns a Handler. It returns an error if Config.Node is nil.
func New(cfg Config) (*Handler, error) {
	if cfg.Node == nil {
		return nil, errors.New("page: Config.Node is nil")
	}
	if cfg.Refresh == 0 {
		cfg.Refresh = 5 * time.Second
	}
	if cfg.Fresh == 0 {
		cfg.Fresh = time.Second
	}
	h := &Handler{cfg: cfg, mux: http.NewServeMux(), turn: make(chan struct{}, 1)}
	var err error
	if h.pages, err = parse(); err != nil {
		return nil, err
	}
	h.mux.HandleFunc("GET /{$}", h.overview)
	h.mux.HandleFunc("GET /pod", h.pod)
	h.mux.HandleFunc("GET /pod/{namespace}/{name}", h.pod)
	h.mux.HandleFunc("GET /page.css", file("text/css; charset=utf-8", css))
	h.mux.HandleFunc("GET /page.js", file("text/javascript; charset=utf-8", js))
	h.mux.HandleFunc("GET /icon.svg", file("image/svg+xml", icon))
	h.mux.HandleFunc("GET /", h.nothing)
	return h, nil
}

//go:embed page.css
var css []byte

//go:embed page.js
var js []byte

//go:embed icon.svg
var icon []byte

// policy is the Content-Security-Policy: pages load only resources of their own origin.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

// file serves an embedded file.
func file(contentType string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "max-age=60")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}
}

func (h *Handler) overview(w http.ResponseWriter, r *http.Request) {
	n, ok := h.ask(r.Context())
	if !ok {
		return // the client closed the connection
	}
	h.write(w, r, http.StatusOK, viewOf(n))
}

// pod serves the page of a pod by namespace and name, or by UID.
func (h *Handler) pod(w http.ResponseWriter, r *http.Request) {
	n, ok := h.ask(r.Context())
	if !ok {
		return
	}
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	uid := clean(r.URL.Query().Get("uid"), full)
	v := viewOf(n)
	if name != "" {
		v.Base = "../../"
	}
	pods := sorted(n.Pods)
	for i := range pods {
		p := &pods[i]
		if uid != "" && p.UID == uid || uid == "" && p.Namespace == namespace && p.Name == name {
			v.Pod, v.Title = p, cut(p.Name, short)+" on "+title(n)
			v.Logs = h.logs(p)
			h.write(w, r, http.StatusOK, v)
			return
		}
	}
	v.Title, v.Missing = "No such pod", clean("pod "+namespace+"/"+name, brief)
	if name == "" {
		v.Missing = "pod with the UID “" + cut(uid, short) + "”"
	}
	h.write(w, r, http.StatusNotFound, v)
}

// logs returns the ends of the logs of a pod's containers.
func (h *Handler) logs(p *Pod) (all []logEnd) {
	for i := range firstOf(p.Containers, mostInPod) {
		c := &p.Containers[i]
		if c.LogPath == "" {
			continue
		}
		end := logEnd{Container: c.Name, Path: c.LogPath}
		if h.cfg.Log != nil {
			lines, err := h.cfg.Log(p, c.LogPath)
			for _, line := range lines {
				end.Lines = append(end.Lines, clean(line, mostInLine))
			}
			switch {
			case err != nil:
				end.Problem = clean("The log cannot be read: "+err.Error(), full)
			case len(lines) == 0:
				end.Problem = "The log is empty."
			}
		}
		all = append(all, end)
	}
	return all
}

// nothing serves the page for unknown paths.
func (h *Handler) nothing(w http.ResponseWriter, r *http.Request) {
	n, ok := h.ask(r.Context())
	if !ok {
		return
	}
	v := viewOf(n)
	v.Title, v.Missing = "Not found", clean("page "+r.URL.Path, brief)
	v.Base = strings.Repeat("../", min(strings.Count(r.URL.Path, "/")-1, maxDepth))
	h.write(w, r, http.StatusNotFound, v)
}

// maxDepth bounds the length of a relative path.
const maxDepth = 32

func title(n *Node) string {
	if n.Name == "" {
		return "a node"
	}
	return cut(n.Name, short)
}

// ask returns the current Node. It returns false if ctx is done first.
func (h *Handler) ask(ctx context.Context) (*Node, bool) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	defer func() { <-h.turn }()
	if h.got.IsZero() || time.Since(h.got) >= h.cfg.Fresh {
		node := h.cfg.Node(ctx)
		if ctx.Err() != nil {
			return nil, false // the node may be incomplete
		}
		h.node, h.got = tidied(node), time.Now()
	}
	n := h.node
	return &n, true
}

// write renders a page and sends it.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, code int, v view) {
	v.Every = max(int(h.cfg.Refresh/time.Second), 0)
	if h.cfg.Refresh > 0 {
		v.Every = max(v.Every, 1)
	}
	v.Refresh, v.Links = v.Every, h.cfg.Links
	if asked := r.URL.Query().Get("refresh"); asked != "" {
		if n, err := strconv.Atoi(asked); err == nil && n >= 0 && n <= 3600 {
			v.Refresh = n
		}
	}
	var b bytes.Buffer
	if err := h.render(&b, v); err != nil {
		http.Error(w, fmt.Sprintf("render the page: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // fails only if the client closed the connection
}

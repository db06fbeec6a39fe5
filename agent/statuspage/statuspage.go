package statuspage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/terminal"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/volume"
)

// A Config configures a [Handler]. Agent is required.
type Config struct {
	// Agent is the agent whose pods are shown. Required. It need not run.
	Agent *agent.Agent

	// History has the last events, plans and measurements. Nil: they are not shown.
	History *History

	// NodeName and Runtime, the display name of the runtime ("containerd 2.4.2"), are
	// part of the page's header. Empty: they are left out.
	NodeName string
	Runtime  string

	// Checks are reported by /healthz and on the page. Nil: [AgentChecks].
	Checks []Check

	// Volumes has the states of the pods' volumes. Nil: none are shown.
	Volumes *volume.Manager

	// Evictions has the thresholds and the conditions of the node. Nil: there are none.
	Evictions *eviction.Manager

	// Images has the images of the node and what garbage collection would remove. Nil:
	// the page reports that images are not managed.
	Images *imagegc.Manager

	// Stats has the CPU and memory usage of the pods. Nil: it is not shown.
	Stats *stats.Collector

	// NoLogs leaves the last lines of the logs of containers out of the page of a pod. Values of
	// the pod's spec are removed from them, but a log may contain other secrets.
	NoLogs bool

	// Handlers serve further paths, by their http.ServeMux pattern: "/metrics",
	// "/stats/summary". The page links to these two.
	Handlers map[string]http.Handler

	// Logger is used for errors of responses. If nil, logs are discarded.
	Logger *slog.Logger
}

// A Check is one line of /healthz.
type Check struct {
	Name  string
	Check func() error // must not block; nil: the check succeeds
}

// sourcesTimeout is how long a source may take to sync until the check "sources" fails.
const sourcesTimeout = time.Minute

// AgentChecks returns the checks of an agent's own components: "runtime", "pleg", "network",
// "syncloop" and "sources"; without "runtime" and "network" if its runtime is not a runtime.Checker.
// The check "sources" fails if a source has not synced within a minute. Other checks of sources, such
// as that of podsource.File, are the caller's.
func AgentChecks(a *agent.Agent) []Check {
	pleg, loop := Check{"pleg", a.PLEG().Healthy}, Check{"syncloop", a.Healthy}
	begin := time.Now()
	sources := Check{"sources", func() error {
		if time.Since(begin) < sourcesTimeout {
			return nil
		}
		return unsynced(a)
	}}
	if h := a.Health(); h != nil {
		return []Check{{"runtime", h.Runtime}, pleg, {"network", h.Network}, loop, sources}
	}
	return []Check{pleg, loop, sources}
}

// unsynced returns an error that names the sources that have not synced; nil if there are none.
func unsynced(a *agent.Agent) error {
	names := a.Table().Unsynced()
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("sources that have not synced: %s: pods that they no longer specify are not stopped, and nothing is removed", strings.Join(names, ", "))
}

// A Handler is an http.Handler that serves the state of an agent. [New] constructs it.
type Handler struct {
	cfg     Config
	mux     *http.ServeMux
	started time.Time

	// The last dry run of image garbage collection. The page requests one Node at a
	// time, which guards the fields.
	images   page.Images
	imagesAt time.Time
}

// New returns a Handler. It returns an error if cfg.Agent is nil, or a pattern of
// cfg.Handlers is invalid or conflicts with the Handler's own.
func New(cfg Config) (h *Handler, err error) {
	if cfg.Agent == nil {
		return nil, errors.New("statuspage: Config.Agent is nil")
	}
	if cfg.Checks == nil {
		cfg.Checks = AgentChecks(cfg.Agent)
	}
	if cfg.History == nil {
		cfg.History = new(History)
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	h = &Handler{cfg: cfg, mux: http.NewServeMux(), started: time.Now()}
	pages, err := page.New(page.Config{Node: h.node, Links: h.links(), Log: h.log})
	if err != nil {
		return nil, fmt.Errorf("statuspage: %w", err)
	}
	defer func() { // http.ServeMux reports invalid patterns only by panics
		if p := recover(); p != nil {
			h, err = nil, fmt.Errorf("statuspage: Config.Handlers: %v", p)
		}
	}()
	h.mux.Handle("/", pages)
	h.mux.HandleFunc("GET /healthz", h.healthz)
	h.mux.HandleFunc("GET /pods", h.pods)
	h.mux.HandleFunc("GET /explain", h.explain)
	for pattern, handler := range cfg.Handlers {
		h.mux.Handle(pattern, handler)
	}
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// links returns the paths that the page links to, relative to it.
func (h *Handler) links() []string {
	links := []string{"healthz", "pods", "explain"}
	for _, path := range []string{"metrics", "stats/summary"} {
		if h.cfg.Handlers["/"+path] != nil {
			links = append(links, path)
		}
	}
	return links
}

// healthz reports the result of each check, with the status 503 if one fails.
func (h *Handler) healthz(w http.ResponseWriter, _ *http.Request) {
	code, body := http.StatusOK, ""
	for _, c := range h.cfg.Checks {
		if err := c.run(); err != nil {
			code = http.StatusServiceUnavailable
			body += fmt.Sprintf("[-] %s: %s\n", c.Name, terminal.Escape(err.Error()))
			continue
		}
		body += fmt.Sprintf("[+] %s ok\n", c.Name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

func (c Check) run() error {
	if c.Check == nil {
		return nil
	}
	return c.Check()
}

// pods lists the desired pods with their statuses, redacted.
func (h *Handler) pods(w http.ResponseWriter, _ *http.Request) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, pod := range h.cfg.Agent.Table().Desired() {
		current := *pod
		if s, ok := h.cfg.Agent.Status().Status(pod.UID); ok {
			current.Status = s
		}
		list.Items = append(list.Items, *redactPod(&current))
	}
	h.writeJSON(w, list)
}

// explain explains the state of every pod, or of that with the UID ?uid=, as text or,
// with ?output=json, as data. Literal values of the pod's spec are removed from errors.
func (h *Handler) explain(w http.ResponseWriter, r *http.Request) {
	var uids []types.UID
	specs := map[types.UID]*v1.Pod{}
	for _, s := range h.cfg.Agent.Table().States() {
		uids, specs[s.UID] = append(uids, s.UID), s.Pod
	}
	if uid := r.URL.Query().Get("uid"); uid != "" {
		uids = []types.UID{types.UID(uid)}
	}
	found := []podworker.Snapshot{}
	for _, uid := range uids {
		e, ok := h.cfg.Agent.Snapshot(uid)
		if !ok {
			continue
		}
		if pod := specs[uid]; pod != nil {
			e = mapText(e, hiderOf(pod))
		}
		found = append(found, e)
	}
	if len(found) == 0 && r.URL.Query().Has("uid") {
		http.Error(w, "no such pod", http.StatusNotFound)
		return
	}
	if r.URL.Query().Get("output") == "json" {
		h.writeJSON(w, found)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, e := range found {
		fmt.Fprintln(w, terminal.Escape(fmt.Sprintf("pod %s/%s (%s): %s", e.Namespace, e.Name, e.UID, describe(e))))
	}
}

func (h *Handler) writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		h.cfg.Logger.Debug("Failed to write a response", "err", err)
	}
}

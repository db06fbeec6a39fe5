package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

// A check is one thing that /healthz reports on.
type check struct {
	name string
	ask  func() error
}

// A page is answered by another part of the agent.
type page struct {
	path   string
	answer http.HandlerFunc
}

// A debugServer serves the status page, /healthz, /pods and /explain. Nil serves nothing.
type debugServer struct{ listener *server.Listener }

// Bounds of the status page: connections in all, and bytes of unfinished requests.
const (
	pageConnections = 64
	pageUnread      = 1 << 20
)

func (a *assembly) listen(statuses *status.Manager, checks []check, more ...page) (*debugServer, error) {
	if a.opts.page == (pageAddress{}) {
		return nil, nil
	}
	on, err := a.opts.page.listen()
	if err != nil {
		return nil, fmt.Errorf("cannot serve /healthz, /pods and /explain; choose another --listen, or end the agent that has it: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { healthz(w, checks) })
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) { pods(w, a.pods.loop, statuses) })
	mux.HandleFunc("GET /explain", func(w http.ResponseWriter, r *http.Request) { explain(w, r, a.pods.loop, a.pods.workers) })
	for _, p := range more {
		mux.HandleFunc(p.path, p.answer)
	}
	if warning := openToAll(on.Addr()); warning != "" {
		a.say(warning)
	}
	l, err := server.NewListener(server.ListenerConfig{
		Listener: on, Handler: onlyLocalNames(on.Addr(), mux), Open: true, MaxStrangers: pageConnections, MaxUnread: pageUnread, Logger: a.logger,
	})
	return &debugServer{l}, err
}

// Run serves until ctx ends.
func (s *debugServer) Run(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return s.listener.Run(ctx)
}

// where tells users how to reach the status page.
func (s *debugServer) where() string {
	if s == nil {
		return "there is no status page"
	}
	return whereIs(s.listener.Addr()) + " shows what runs here"
}

// healthz says of each check whether all is well, and answers 503 unless all
// of it is.
func healthz(w http.ResponseWriter, checks []check) {
	code, body := http.StatusOK, ""
	for _, c := range checks {
		if err := c.ask(); err != nil {
			code = http.StatusServiceUnavailable
			body += fmt.Sprintf("[-] %s: %s\n", c.name, forTerminal(err.Error()))
			continue
		}
		body += fmt.Sprintf("[+] %s ok\n", c.name)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

// pods lists the wanted pods with their statuses, as the kubelet's /pods does, redacted.
func pods(w http.ResponseWriter, loop *podworker.Loop, statuses *status.Manager) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, pod := range loop.Pods() {
		shown := *pod
		if s, ok := statuses.Status(pod.UID); ok {
			shown.Status = s
		}
		list.Items = append(list.Items, *redactPod(&shown))
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(list) // fails only if the client has gone
}

// explain says of each pod, or of that with the UID ?uid=, why it is where it
// is, what it waits for and what comes next: in words, or with ?output=json as
// data. Literal values of its spec are hidden in errors.
func explain(w http.ResponseWriter, r *http.Request, loop *podworker.Loop, workers *podworker.Workers) {
	var uids []types.UID
	specs := map[types.UID]*v1.Pod{}
	for _, s := range workers.States() {
		uids, specs[s.UID] = append(uids, s.UID), s.Pod
	}
	if uid := r.URL.Query().Get("uid"); uid != "" {
		uids = []types.UID{types.UID(uid)}
	}
	found := []podworker.Explanation{}
	for _, uid := range uids {
		e, ok := loop.Explain(uid)
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
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(found) // fails only if the client has gone
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, e := range found {
		fmt.Fprintln(w, forTerminal(e.String()))
	}
}

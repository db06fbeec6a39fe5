package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// A debugServer answers /healthz, /pods and /explain, and shows people what runs here.
type debugServer struct {
	Addr     string
	listener net.Listener
	http     http.Server
}

func (a *assembly) listen(statuses *status.Manager, checks []check, more ...page) (*debugServer, error) {
	listener, err := net.Listen("tcp", a.opts.listen)
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
	if warning := openToAll(listener.Addr()); warning != "" {
		a.say(warning)
	}
	return &debugServer{
		Addr:     listener.Addr().String(),
		listener: listener,
		http: http.Server{
			Handler: onlyLocalNames(listener.Addr(), mux), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		},
	}, nil
}

// Run serves until ctx ends.
func (s *debugServer) Run(ctx context.Context) error {
	closed := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer closed()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
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

// pods lists the wanted pods with their statuses, as the kubelet's /pods does.
func pods(w http.ResponseWriter, loop *podworker.Loop, statuses *status.Manager) {
	list := v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
	for _, pod := range loop.Pods() {
		shown := *pod
		if s, ok := statuses.Status(pod.UID); ok {
			shown.Status = s
		}
		list.Items = append(list.Items, shown)
	}
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(list) // fails only if the client has gone
}

// explain says of each pod, or of that with the UID ?uid=, why it is where it
// is, what it waits for and what comes next: in words, or with ?output=json as
// data.
func explain(w http.ResponseWriter, r *http.Request, loop *podworker.Loop, workers *podworker.Workers) {
	var uids []types.UID
	if uid := r.URL.Query().Get("uid"); uid != "" {
		uids = append(uids, types.UID(uid))
	} else {
		for _, s := range workers.States() {
			uids = append(uids, s.UID)
		}
	}
	found := []podworker.Explanation{}
	for _, uid := range uids {
		if e, ok := loop.Explain(uid); ok {
			found = append(found, e)
		}
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

package shutdown

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A Manual is a [Trigger] that the program controls, by its methods or as an http.Handler. The
// zero value is ready to use. Its methods are safe for concurrent use and may be called before
// Watch.
type Manual struct {
	handler http.Handler // authorizes requests and calls serve; nil without a token

	mu       sync.Mutex // guards the fields below
	deadline time.Time
	stopped  chan struct{} // nil: not stopping; otherwise closed when the pods have terminated
	released bool
	changed  chan struct{} // closed by the next change; nil while Watch does not wait
}

// Stop starts a shutdown. The machine stops at the deadline; zero means none. The channel is
// closed when the pods have terminated or Cancel is called. A second Stop has no effect, except
// for an earlier deadline.
func (m *Manual) Stop(deadline time.Time) (done <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped == nil {
		m.deadline, m.stopped = deadline, make(chan struct{})
		m.changeLocked()
	} else if !deadline.IsZero() && (m.deadline.IsZero() || deadline.Before(m.deadline)) {
		m.deadline = deadline
		m.changeLocked()
	}
	return m.stopped
}

// Cancel cancels the shutdown. It has no effect without one.
func (m *Manual) Cancel() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped == nil {
		return
	}
	if !m.released {
		close(m.stopped)
	}
	m.stopped, m.released = nil, false
	m.changeLocked()
}

func (m *Manual) changeLocked() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// Watch implements [Trigger].
func (m *Manual) Watch(ctx context.Context, _ time.Duration, notify func(Notice)) error {
	var last chan struct{}     // Manual.stopped of the last notice
	var lastDeadline time.Time // its deadline
	for {
		m.mu.Lock()
		now, deadline := m.stopped, m.deadline
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		switch {
		case now == last && (now == nil || deadline.Equal(lastDeadline)):
		case now == nil:
			notify(Notice{})
		default:
			notify(Notice{Stopping: true, Deadline: deadline, Release: func() { m.release(now) }})
		}
		last, lastDeadline = now, deadline
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (m *Manual) release(stopped chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped == stopped && !m.released {
		m.released = true
		close(stopped)
	}
}

// ServeHTTP controls the shutdown. POST starts one, with ?deadline=90s if the machine stops after
// that time; it responds immediately, or with ?wait=true when the pods have terminated. DELETE
// cancels it, GET returns its state. Requests are not authorized unless m was constructed by
// [NewManual].
func (m *Manual) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.handler != nil {
		m.handler.ServeHTTP(w, r)
		return
	}
	m.serve(w, r)
}

// serve is ServeHTTP without authorization.
func (m *Manual) serve(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodDelete:
		m.Cancel()
	case http.MethodPost:
		var deadline time.Time
		if text := r.URL.Query().Get("deadline"); text != "" {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				http.Error(w, fmt.Sprintf("deadline=%q: must be a duration, such as 90s", text), http.StatusBadRequest)
				return
			}
			deadline = time.Now().Add(d)
		}
		done := m.Stop(deadline)
		if r.URL.Query().Get("wait") == "true" {
			select {
			case <-done:
			case <-r.Context().Done():
				return
			}
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST, DELETE")
		http.Error(w, "method must be GET, POST or DELETE", http.StatusMethodNotAllowed)
		return
	}
	m.mu.Lock()
	state := struct {
		Stopping bool `json:"stopping"`
		Done     bool `json:"done"`
	}{m.stopped != nil, m.released}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost && !state.Done {
		w.WriteHeader(http.StatusAccepted)
	}
	_ = json.NewEncoder(w).Encode(state) // fails only if the client has disconnected
}

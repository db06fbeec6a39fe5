package shutdown

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// A Manual is a [Trigger] for programs that learn by ways of their own that the
// machine is about to stop, by its methods or as an http.Handler, and for tests. The
// zero value is ready. Its methods may be called from any goroutine, before Watch as
// well.
type Manual struct {
	mu       sync.Mutex // guards the fields below
	deadline time.Time
	stopped  chan struct{} // nil: it is not stopping; else closed when the pods have ended
	released bool
	changed  chan struct{} // closed at the next change; nil while nobody waits
}

// Stop says that the machine is about to stop, at the deadline at the latest, if
// there is one. The channel is closed when the node is done, or Cancel is called. A
// second Stop changes nothing, but for a deadline that is nearer.
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

// Cancel says that it is not, after all.
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
func (m *Manual) Watch(ctx context.Context, _ time.Duration, tell func(Notice)) error {
	var told chan struct{} // the stop that was told; nil: none
	var toldOf time.Time   // its deadline
	for {
		m.mu.Lock()
		now, deadline := m.stopped, m.deadline
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		switch {
		case now == told && (now == nil || deadline.Equal(toldOf)):
		case now == nil:
			tell(Notice{})
		default:
			tell(Notice{Stopping: true, Deadline: deadline, Release: func() { m.release(now) }})
		}
		told, toldOf = now, deadline
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (m *Manual) release(of chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped == of && !m.released {
		m.released = true
		close(of)
	}
}

// ServeHTTP lets others say it: a POST begins a shutdown, with ?deadline=90s if the
// machine waits no longer than that, and is answered at once; with ?wait=true when
// the node is done. DELETE calls it off, GET tells how it stands. Who may do that is
// for the caller to say.
func (m *Manual) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodDelete:
		m.Cancel()
	case http.MethodPost:
		var deadline time.Time
		if text := r.URL.Query().Get("deadline"); text != "" {
			d, err := time.ParseDuration(text)
			if err != nil || d <= 0 {
				http.Error(w, fmt.Sprintf("deadline=%q: want a time, such as 90s", text), http.StatusBadRequest)
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
		http.Error(w, "want GET, POST or DELETE", http.StatusMethodNotAllowed)
		return
	}
	m.mu.Lock()
	is := struct {
		Stopping bool `json:"stopping"`
		Done     bool `json:"done"`
	}{m.stopped != nil, m.released}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPost && !is.Done {
		w.WriteHeader(http.StatusAccepted)
	}
	_ = json.NewEncoder(w).Encode(is) // fails only if the client has gone
}

package server

import (
	"fmt"
	"net/http"
	"strings"
)

// A logWriter sends a log as it is read: each write at once (la-3).
type logWriter struct {
	http.ResponseWriter
	cfg    ContainerLogs
	flush  *http.ResponseController
	began  bool
	inside bool  // the last line has no end yet
	failed error // of the connection
	told   []string
}

func newLogWriter(w http.ResponseWriter, cfg ContainerLogs) *logWriter {
	return &logWriter{ResponseWriter: w, cfg: cfg, flush: http.NewResponseController(w)}
}

// begin sends the head of the answer.
func (w *logWriter) begin() {
	if w.began {
		return
	}
	w.began = true
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if w.cfg.Trailer {
		h.Set("Trailer", LogErrorTrailer)
	}
	w.WriteHeader(http.StatusOK)
	w.failed = w.flush.Flush()
}

func (w *logWriter) Write(b []byte) (int, error) {
	w.begin()
	if len(b) > 0 {
		w.inside = b[len(b)-1] != '\n'
	}
	n, err := w.ResponseWriter.Write(b)
	if err == nil {
		err = w.flush.Flush()
	}
	w.failed = err
	return n, err
}

// maxTold bounds what a trailer tells: a log may be followed for as long as it likes.
const maxTold = 8

// gap tells that something is missing here.
func (w *logWriter) gap(err error) {
	w.tell("lines are missing here", err)
}

func (w *logWriter) tell(what string, err error) {
	text := strings.Map(printable, fmt.Sprintf("%s: %v", what, err))
	if w.told = append(w.told, text); len(w.told) > maxTold {
		w.told[maxTold-2] = "and more"
		w.told = append(w.told[:maxTold-1], text) // the last one says how it ended
	}
	if !w.cfg.Marker {
		return
	}
	line := "[kubeparts: " + text + "]\n"
	if w.inside {
		line = "\n" + line
	}
	_, _ = w.Write([]byte(line)) // who reads finds out
}

// printable makes what would end a header's line a space.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return ' '
	}
	return r
}

// end ends the answer: with an error if nothing has been sent (la-2); otherwise with
// what the configuration wants to be said, or with the connection.
func (w *logWriter) end(err error) {
	if err != nil && !w.began {
		refuse(w.ResponseWriter, http.StatusBadRequest, err.Error())
		return
	}
	w.begin()
	if err != nil {
		w.tell("the log ends early", err)
		if !w.cfg.Trailer && !w.cfg.Marker {
			panic(http.ErrAbortHandler) // which is how a handler cuts its connection
		}
	}
	if w.cfg.Trailer {
		w.Header().Set(LogErrorTrailer, strings.Join(w.told, "; "))
	}
}

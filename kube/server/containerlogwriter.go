package server

import (
	"fmt"
	"net/http"
	"strings"
)

// A logWriter sends a log while it is read, and flushes after each write.
type logWriter struct {
	http.ResponseWriter
	cfg    ContainerLogs
	flush  *http.ResponseController
	began  bool
	inside bool  // the last line is not terminated
	failed error // of the connection
	errors []string
}

func newLogWriter(w http.ResponseWriter, cfg ContainerLogs) *logWriter {
	return &logWriter{ResponseWriter: w, cfg: cfg, flush: http.NewResponseController(w)}
}

// begin sends the header of the response.
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

// maxErrors bounds the errors in the trailer, since a log may be followed without limit.
const maxErrors = 8

// gap reports that lines are missing at this point.
func (w *logWriter) gap(err error) {
	w.report("lines are missing here", err)
}

// report adds an error to the trailer and, with Marker, to the log.
func (w *logWriter) report(message string, err error) {
	text := strings.Map(printable, fmt.Sprintf("%s: %v", message, err))
	if w.errors = append(w.errors, text); len(w.errors) > maxErrors {
		w.errors[maxErrors-2] = "and more"
		w.errors = append(w.errors[:maxErrors-1], text) // the last one is the error that ended the log
	}
	if !w.cfg.Marker {
		return
	}
	line := "[kubeparts: " + text + "]\n"
	if w.inside {
		line = "\n" + line
	}
	_, _ = w.Write([]byte(line)) // an error is stored in failed
}

// printable replaces characters that are not allowed in a header with spaces.
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return ' '
	}
	return r
}

// end completes the response: with an error status if nothing was sent, otherwise with the
// trailer or marker, or by closing the connection.
func (w *logWriter) end(err error) {
	if err != nil && !w.began {
		refuse(w.ResponseWriter, http.StatusBadRequest, err.Error())
		return
	}
	w.begin()
	if err != nil {
		w.report("the log ends early", err)
		if !w.cfg.Trailer && !w.cfg.Marker {
			panic(http.ErrAbortHandler) // closes the connection
		}
	}
	if w.cfg.Trailer {
		w.Header().Set(LogErrorTrailer, strings.Join(w.errors, "; "))
	}
}

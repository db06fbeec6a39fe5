package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A LogQuery selects logs of services of the node, or a log file.
type LogQuery struct {
	// Services are names such as kubelet or containerd.service; File is a path below
	// Node.Logs. Exactly one of them is set.
	Services []string
	File     string

	// Since and Until are inclusive bounds of the time. Zero: no bound.
	Since, Until time.Time

	// Tail is the number of lines at the end. A negative value means all.
	Tail int

	// Pattern selects matching lines. Nil: all.
	Pattern *regexp.Regexp

	// Boot selects the boot of the machine: 0 is the current one, -1 the previous one. Nil:
	// all.
	Boot *int
}

// serviceName matches names of systemd units, without wildcards.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9_@.:\\-]*$`)

// parseLogQuery parses the parameters of a request for /logs/: query, sinceTime, untilTime,
// tailLines, pattern and boot. It returns an error that names an invalid parameter.
func parseLogQuery(v url.Values) (q LogQuery, err error) {
	for _, name := range v["query"] {
		switch {
		case strings.ContainsAny(name, `/\`) && q.File != "":
			return q, errors.New("query: more than one file")
		case strings.ContainsAny(name, `/\`):
			q.File = strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/")
			if !fs.ValidPath(q.File) || q.File == "." {
				return q, fmt.Errorf("query: %q is not a file in the log directory", name)
			}
		case serviceName.MatchString(name):
			q.Services = append(q.Services, name)
		default:
			return q, fmt.Errorf("query: %q is not a service name, and not a path of a file, which contains a slash", name)
		}
	}
	if (q.File == "") == (len(q.Services) == 0) {
		return q, errors.New("query: want services, or one file, whose path contains a slash")
	}
	if q.Since, err = queryTime(v, "sinceTime"); err != nil {
		return q, err
	}
	if q.Until, err = queryTime(v, "untilTime"); err != nil {
		return q, err
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && q.Until.Before(q.Since) {
		return q, errors.New("untilTime is before sinceTime")
	}
	q.Tail = -1
	if text := v.Get("tailLines"); text != "" {
		if q.Tail, err = strconv.Atoi(text); err != nil || q.Tail < 0 {
			return q, fmt.Errorf("tailLines: %q is not a number of lines", text)
		}
	}
	if text := v.Get("boot"); text != "" {
		boot, err := strconv.Atoi(text)
		if err != nil || boot > 0 {
			return q, fmt.Errorf("boot: %q is not 0, the current boot, or a negative number", text)
		}
		q.Boot = &boot
	}
	if text := v.Get("pattern"); text != "" {
		if q.Pattern, err = regexp.Compile(text); err != nil {
			return q, fmt.Errorf("pattern: %w", err)
		}
	}
	return q, q.check()
}

// check rejects parameters that do not apply to files.
func (q LogQuery) check() error {
	if q.File != "" && (!q.Since.IsZero() || !q.Until.IsZero() || q.Boot != nil) {
		return errors.New("query: sinceTime, untilTime and boot apply to services only: the lines of a file have no timestamps")
	}
	return nil
}

func queryTime(v url.Values, name string) (time.Time, error) {
	text := v.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%s: %q: want a time such as 2026-01-02T15:04:05Z", name, text)
	}
	return at, nil
}

// logQuery serves /logs/?query=.
func (s *Server) logQuery(w http.ResponseWriter, r *http.Request) {
	q, err := parseLogQuery(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := &startedWriter{ResponseWriter: w}
	err = errors.ErrUnsupported
	if q.File != "" {
		err = s.logFile(r.Context(), out, q, q.File)
	} else {
		if s.cfg.Node.ServiceLogs != nil {
			err = s.cfg.Node.ServiceLogs(r.Context(), q, out)
		}
		if errors.Is(err, errors.ErrUnsupported) && !out.started {
			err = s.serviceFiles(r.Context(), out, q)
		}
	}
	switch {
	case err == nil, r.Context().Err() != nil: // the client has closed the connection
	case out.started:
		s.log.Warn("Failed to read node log; the response is incomplete", "err", err)
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, http.StatusNotFound, "log not found\n")
	case errors.Is(err, fs.ErrPermission):
		refuse(w, http.StatusForbidden, "access to this log is not permitted\n")
	case errors.Is(err, errors.ErrUnsupported):
		refuse(w, http.StatusBadRequest, err.Error()+"\n")
	default:
		s.fail(w, r, err)
	}
}

// serviceFiles writes the log files of services that are not in the journal.
func (s *Server) serviceFiles(ctx context.Context, w *startedWriter, q LogQuery) error {
	if !q.Since.IsZero() || !q.Until.IsZero() || q.Boot != nil {
		return fmt.Errorf("sinceTime, untilTime and boot require a journal: %w", errors.ErrUnsupported)
	}
	for _, name := range q.Services {
		paths := []string{name, name + ".log", name + "/" + name + ".log"}
		at := slices.IndexFunc(paths, func(file string) bool {
			info, err := fs.Stat(s.cfg.Node.Logs, file)
			return err == nil && info.Mode().IsRegular()
		})
		if at < 0 {
			return fs.ErrNotExist
		}
		if err := s.logFile(ctx, w, q, paths[at]); err != nil {
			return err
		}
	}
	return nil
}

// A startedWriter records whether the response was started.
type startedWriter struct {
	http.ResponseWriter
	started bool
}

func (b *startedWriter) Write(p []byte) (int, error) {
	b.started = true
	return b.ResponseWriter.Write(p)
}
